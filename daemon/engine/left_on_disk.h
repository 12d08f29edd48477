// daemon/engine/left_on_disk.h — jobs that are keyed before now but not due yet, and wait on disk.
//
// What:    a key is the due time by the clocks as they stood when it was made. After the wall clock
//          was set back, jobs whose keys have passed may have to wait for hours, and there may be
//          more of them than memory has room for. They stay on disk while due jobs behind them are
//          loaded. What is known of them is where the first one lies, and when the first one is
//          due: then all of them are looked at again.
// Threads: one owner. Cost: a few comparisons.
#pragma once

#include <algorithm>
#include <optional>

#include "base/limits.h"
#include "base/time.h"
#include "daemon/engine/frontier.h"
#include "daemon/engine/ticks.h"

namespace delayd::engine {

class LeftOnDisk {
 public:
  // Whether the job is due late enough; one that is due sooner is better loaded.
  static bool MayStay(const Moment& due, const Now& now) {
    return due.Until(now) > Millis(limits::kLeftOnDiskMs);
  }

  void Add(const Frontier& place, const Moment& due) {
    from_ = std::min(from_.value_or(place), place);
    std::optional<Moment>& first = due.on_boot_clock ? on_boot_clock_ : on_wall_clock_;
    if (!first || due.tick < first->tick) {
      first = due;
    }
  }

  // The place of the first of them.
  const std::optional<Frontier>& from() const { return from_; }

  // How long all of them may stay; none: there are none.
  std::optional<Millis> Until(const Now& now) const {
    std::optional<Millis> until;
    for (const std::optional<Moment>& first : {on_boot_clock_, on_wall_clock_}) {
      if (first) {
        until = std::min(until.value_or(Millis::max()), first->Until(now));
      }
    }
    return until;
  }

 private:
  std::optional<Frontier> from_;
  std::optional<Moment> on_boot_clock_;  // when the first job on this clock is due
  std::optional<Moment> on_wall_clock_;
};

}  // namespace delayd::engine
