// daemon/once_a_minute.h — for a line in the log that clients can cause as often as they like.
//
// Threads: one owner.
// Cost:    a comparison.
#pragma once

#include <chrono>
#include <optional>

#include "base/time.h"

namespace delayd {

class OnceAMinute {
 public:
  // True: tell it now, and not again before a minute has passed.
  bool IsDue(BootTime now) {
    if (told_ && now - *told_ < std::chrono::minutes(1)) {
      return false;
    }
    told_ = now;
    return true;
  }

 private:
  std::optional<BootTime> told_;
};

}  // namespace delayd
