// cli/exit_code.h — the exit codes of delayctl, and which Status leads to which.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace delayd::cli {

// Scripts rely on these: never renumber.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // failed, or only partly done
  kExitUsage = 2,        // wrong usage or unreadable input
  kExitNotFound = 3,     // no such job, key or queue
  kExitRefused = 4,      // refused by state: leased, already fired, key conflict, stale lease
  kExitUnreachable = 5,  // daemon unreachable or not ready
  kExitTimedOut = 6,
  kExitNotAllowed = 7,
  kExitInterrupted = 130,
};

struct ExitCodeMeaning {
  ExitCode code;
  std::string_view meaning;
};

// For the help and the manual.
std::span<const ExitCodeMeaning> ExitCodeTable();

ExitCode ExitCodeOf(const Status& status);
// The code of a command over many objects: their common code, or kExitFailed when they differ.
ExitCode Combine(ExitCode so_far, ExitCode next, bool first);

}  // namespace delayd::cli
