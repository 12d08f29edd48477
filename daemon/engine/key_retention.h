// daemon/engine/key_retention.h — whether a finished job still holds its key.
//
// What:    it does until the time that its row tells, by the wall clock. Of a clock that was far
//          ahead and has been put right that is long after: such a job finished before the clock
//          was set back, or before the start, and is kept from then on, by the boot clock.
// Units:   base/time.h.
// Threads: one owner; reads no clock itself.
// Cost:    O(1).
#pragma once

#include <algorithm>

#include "base/time.h"

namespace delayd::engine {

class KeyRetention {
 public:
  // Of a start.
  explicit KeyRetention(const Now& now) : highest_(now.wall), since_(now.boot) {}

  // Every reading of the clocks.
  void See(const Now& now) {
    if (now.wall < highest_ - kTolerance) {
      highest_ = now.wall;
      since_ = now.boot;
    }
    highest_ = std::max(highest_, now.wall);
  }

  // `retention`: of its queue. A row that stands later than its job finished is told from one of a
  // wrong clock by being kept for no longer than that.
  bool IsKept(WallTime finished, WallTime expiry, Millis retention, const Now& now) const {
    const WallTime latest = now.wall + kTolerance;
    const bool is_of_wrong_clock = finished > latest && expiry > latest + retention;
    return is_of_wrong_clock ? now.boot < since_ + retention : expiry > now.wall;
  }

 private:
  static constexpr Millis kTolerance{60'000};

  WallTime highest_;  // since then
  BootTime since_;    // what finished since then finished within the tolerance of the clock
};

}  // namespace delayd::engine
