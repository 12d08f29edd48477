// cli/verbs/doctor_checks.h — doctor's checks beyond the daemon's own answers: the socket, the
// disk, the connections, the clocks.
//
// Errors:  none; a check that cannot be made is a finding.
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

// Whether the socket exists and this user may connect to it.
Finding CheckSocket(const std::string& path);

// The disk of a local directory. `reserve`: free space below which the daemon takes no new jobs;
// none when it does not tell.
Finding CheckDisk(const std::string& directory, std::optional<uint64_t> reserve);
// A disk that takes no writes, as the daemon tells. `free`: bytes; none when it does not tell.
Finding CheckReadOnlyDisk(std::optional<uint64_t> free);
// The disk as the daemon sees it, wherever its data lies. `files`: how many more files it can hold;
// none: as many as there is space for.
Finding CheckDaemonsDisk(uint64_t free,
                         std::optional<uint64_t> files,
                         std::optional<uint64_t> reserve,
                         std::optional<uint64_t> log_bytes);

// `page`: the daemon's metrics. None when they do not tell.
std::optional<Finding> CheckConnections(std::string_view page);

// Jobs are due by the daemon's clock, which is `ahead` of the local one; none if only by little.
std::optional<Finding> CompareClocks(Millis ahead);
// The local clock; `shown` is `now` as people read it.
Finding CheckClock(WallTime now, const std::string& shown);

}  // namespace delayd::cli
