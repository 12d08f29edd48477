// daemon/commit_watch.h — tells of a commit that does not come back.
//
// What:    a warning when one has been under way for `late`, an error when for `stuck`; each once.
//          That it has come back in the end is told as a slow commit (server_commit.cc).
// Units:   base/time.h; a commit is known by when it began.
// Errors:  none.
// Threads: one owner, which must not be who waits for that commit.
// Cost:    a comparison; the caller need not ask again before the age that Look returns.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/time.h"

namespace delayd {

// Longer than a busy disk takes, and early enough to be told before a service manager's watchdog
// ends the daemon.
inline constexpr Millis kCommitLate{5000};
// Unless health.commit_stuck says otherwise.
inline constexpr Millis kCommitStuck{30'000};

class CommitWatch {
 public:
  explicit CommitWatch(Millis late = kCommitLate, Millis stuck = kCommitStuck)
      : late_(std::min(late, stuck)), stuck_(stuck) {}

  // The age at which to look again at this commit; none: all of it has been told.
  std::optional<Millis> Look(std::chrono::steady_clock::time_point began, Millis age);

 private:
  const Millis late_;
  const Millis stuck_;
  std::chrono::steady_clock::time_point began_;
  Millis told_{0};  // up to this age, of that one
};

}  // namespace delayd
