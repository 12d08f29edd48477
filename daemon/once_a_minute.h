// daemon/once_a_minute.h — limits a log line that clients could cause as often as they like.
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
  // True: log it now; false for the next minute.
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
