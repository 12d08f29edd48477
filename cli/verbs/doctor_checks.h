// cli/verbs/doctor_checks.h — what doctor looks at beside the daemon's own answers, and what it
// makes of that: the socket, the disk, the connections, the clocks.
//
// Errors:  none; what cannot be looked at is a finding.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace delayd::cli {

enum class Result : uint8_t { kOk, kWarn, kFail };

struct Finding {
  std::string check;
  Result result = Result::kOk;
  std::string what;
  std::string cure = {};
};

// Whether it is there, and its user may use it.
Finding CheckSocket(const std::string& path);

// The disk of a directory here. `reserve`: below it the daemon takes no new jobs; none: it does not
// tell.
Finding CheckDisk(const std::string& directory, std::optional<uint64_t> reserve);
// As the daemon sees it, wherever its data lies. `files`: none: as many as there is space for.
Finding CheckDaemonsDisk(uint64_t free,
                         std::optional<uint64_t> files,
                         std::optional<uint64_t> reserve,
                         std::optional<uint64_t> log_bytes);

// `page`: the daemon's metrics. None: they do not tell.
std::optional<Finding> CheckConnections(std::string_view page);

// Jobs are due by the daemon's clock, which is `ahead` of the one here. None: not by much.
std::optional<Finding> CompareClocks(Millis ahead);
// The clock here; `shown` is `now` for people.
Finding CheckClock(WallTime now, const std::string& shown);

}  // namespace delayd::cli
