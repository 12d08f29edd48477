// daemon/exit_codes.h — how the daemon tells a service manager or a script why it ended.
//
// Source:  docs/decisions/0042-exit-codes-of-the-daemon.md; delayd --help lists them too.
#pragma once

#include <string_view>

#include "base/status.h"

namespace delayd {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitDataDir = 3,
  kExitNewerSchema = 4,
  kExitDamaged = 5,
  kExitCommitFailed = 6,
  kExitReplaced = 7,
};

// A failure that a restart cannot cure has a code of its own.
inline ExitCode ExitCodeOf(const Status& status, ExitCode otherwise) {
  if (status.code() == StatusCode::kDataLoss) {
    return kExitDamaged;
  }
  if (status.reason() == "data_dir_replaced") {
    return kExitReplaced;
  }
  return status.reason() == "newer_schema" ? kExitNewerSchema : otherwise;
}

// For a status about something that the configuration names: a failure that may pass by itself is
// not a configuration mistake.
inline ExitCode ExitCodeOfNamed(const Status& status) {
  return status.code() == StatusCode::kUnavailable ? kExitFailed : kExitUsage;
}

inline constexpr std::string_view kExitCodesHelp =
    "Exit codes:\n"
    "  0  ended in order\n"
    "  1  failed, as the last line on stderr says\n"
    "  2  usage or configuration error\n"
    "  3  the data directory is in use or cannot be opened\n"
    "  4  the data was written by a newer version\n"
    "  5  the data is damaged\n"
    "  6  the storage failed while running; nothing acknowledged is lost, start again\n"
    "  7  another directory, or none, came to stand at the data directory while the daemon ran\n";

}  // namespace delayd
