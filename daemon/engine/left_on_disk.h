// daemon/engine/left_on_disk.h — jobs that are keyed before now, and wait for their clock on disk.
//
// What:    a key is the due time by the clocks as they stood. Where the wall clock was set back,
//          jobs whose keys have passed may wait for hours, and may be more than memory has room
//          for: they stay on disk while what is due behind them is loaded. Known of them is where
//          the first one lies, and when one of them is due first: then they are looked at again.
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
  // What is due so soon had better be loaded.
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

  // The place of the first.
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
  std::optional<Moment> on_boot_clock_;  // when the first that waits for it is due
  std::optional<Moment> on_wall_clock_;
};

}  // namespace delayd::engine
