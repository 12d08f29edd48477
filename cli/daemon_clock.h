// cli/daemon_clock.h — the daemon's wall clock, estimated from the dates of its answers.
//
// What:    jobs are due by the daemon's clock, which may be on another machine, or held. A date is
//          in whole seconds and an answer takes a while to arrive, so within two seconds the local
//          clock is as good.
// Units:   base/time.h.
// Threads: any.
#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.h"
#include "base/time.h"

namespace delayd::cli {

class DaemonClock {
 public:
  // `here`, the local clock, must outlive this.
  explicit DaemonClock(const Clock& here) : here_(here) {}

  // An answer dated `date` has just arrived to a request sent when the local clock showed `asked`.
  void Hear(WallTime asked, WallTime date) {
    constexpr Millis kTolerance{2000};
    constexpr Millis kSecond{1000};
    const Millis least = date - Here();
    const Millis most = date + kSecond - asked;
    ahead_ = least > kTolerance   ? least + kSecond / 2
             : most < -kTolerance ? most - kSecond / 2
                                  : Millis(0);
  }

  // How far the daemon's clock is ahead of the local one; zero: by little, or unknown.
  Millis ahead() const { return ahead_; }

  WallTime Here() const { return here_.Sample().wall; }

  WallTime Now() const { return Here() + ahead(); }

 private:
  const Clock& here_;
  std::atomic<Millis> ahead_{Millis(0)};
};

}  // namespace delayd::cli
