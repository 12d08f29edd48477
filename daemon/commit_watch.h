// daemon/commit_watch.h — reports a commit that does not return.
//
// What:    logs a warning once a commit has run for `late`, and an error once it has run for
//          `stuck`. When it does return, it is logged as a slow commit (server_commit.cc).
// Units:   base/time.h; a commit is identified by the time it began.
// Errors:  none.
// Threads: one owner, which must not be the thread that waits for the commit.
// Cost:    a comparison; the caller need not ask again before the age that Look returns.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/time.h"

namespace delayd {

// Longer than a busy disk takes, and short enough to be logged before a service manager's watchdog
// kills the daemon.
inline constexpr Millis kCommitLate{5000};
// Unless health.commit_stuck says otherwise.
inline constexpr Millis kCommitStuck{30'000};

class CommitWatch {
 public:
  explicit CommitWatch(Millis late = kCommitLate, Millis stuck = kCommitStuck)
      : late_(std::min(late, stuck)), stuck_(stuck) {}

  // Returns the age at which to look at this commit again; none: everything has been logged.
  std::optional<Millis> Look(std::chrono::steady_clock::time_point began, Millis age);

 private:
  const Millis late_;
  const Millis stuck_;
  std::chrono::steady_clock::time_point began_;
  Millis told_{0};  // the commit that began at began_ was logged up to this age
};

}  // namespace delayd
