// daemon/engine/key_retention.h — whether a finished job still holds its key.
//
// What:    it does until the expiry that its row names, by the wall clock. If the clock was far
//          ahead when the job finished and has been corrected since, that is much too late. Such a
//          job finished before the clock was set back, or before the start: it keeps its key for
//          the retention counted from then, by the boot clock.
// Units:   base/time.h.
// Threads: one owner; reads no clock itself.
// Cost:    O(1).
#pragma once

#include <algorithm>

#include "base/time.h"

namespace delayd::engine {

class KeyRetention {
 public:
  // `now`: at the start.
  explicit KeyRetention(const Now& now) : highest_(now.wall), since_(now.boot) {}

  // Called with every reading of the clocks.
  void See(const Now& now) {
    if (now.wall < highest_ - kTolerance) {
      highest_ = now.wall;
      since_ = now.boot;
    }
    highest_ = std::max(highest_, now.wall);
  }

  // `retention`: that of its queue. A row may also be dated ahead because the mark of finished rows
  // was ahead when it was put. Such a row expires within `retention` from now, which tells it from
  // a row of a wrong clock.
  bool IsKept(WallTime finished, WallTime expiry, Millis retention, const Now& now) const {
    const WallTime latest = now.wall + kTolerance;
    const bool is_of_wrong_clock = finished > latest && expiry > latest + retention;
    return is_of_wrong_clock ? now.boot < since_ + retention : expiry > now.wall;
  }

 private:
  static constexpr Millis kTolerance{60'000};

  WallTime highest_;  // seen since `since_`
  BootTime since_;    // what finished since then finished within the tolerance of the clock
};

}  // namespace delayd::engine
