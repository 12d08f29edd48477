// daemon/engine/low_water_mark.h — what the low-water mark must stay below: the smallest key_due of
// the jobs that have fired and are not finished, and of those that wait in the boot wheel.
//
// What:    below the low-water mark the store holds nothing but tombstones, so no seek may ever go
//          there. FiredKeys has the keys of what has fired: jobs fire in their order, mostly, which
//          is the queue's row. What still waits is bounded by its wheel, and in the boot wheel by
//          its offset too, which BootOffsets has.
// Threads: one owner.
// Cost:    O(1), and O(log n) for one that comes late, amortised; entries of finished jobs go when
//          they come first or outnumber the live ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "daemon/engine/job_table.h"
#include "wheel/indexed_priority_queue.h"
#include "wheel/timer.h"

namespace delayd::engine {

class FiredKeys {
 public:
  // Another job may have the slot by now. If it has fired under the same key_due, that is a live
  // key all the same.
  struct Key {
    WallTime key_due;
    Slot slot = 0;

    friend bool operator<(const Key& a, const Key& b) { return a.key_due < b.key_due; }
  };

  void Add(WallTime key_due, Slot slot) { keys_.Add({key_due, slot}); }

  // `is_live(key)` tells whether that slot has a job that has fired under that key. `live` is how
  // many jobs have fired.
  template <typename IsLive>
  std::optional<WallTime> Min(size_t live, const IsLive& is_live) {
    if (keys_.size() > 2 * live + 1024) {
      Compact(is_live);
    }
    while (!keys_.empty() && !is_live(keys_.Top())) {
      keys_.Pop();
    }
    return keys_.empty() ? std::nullopt : std::optional(keys_.Top().key_due);
  }

  size_t size() const { return keys_.size(); }

 private:
  using Keys = wheel::IndexedPriorityQueue<Key>;

  // One entry a live key: a job that was given back has fired under the same key again.
  template <typename IsLive>
  void Compact(const IsLive& is_live) {
    std::vector<Key> live;
    keys_.ForEach([&](const Key& key) {
      if (is_live(key)) {
        live.push_back(key);
      }
    });
    const auto whole = [](const Key& key) { return std::pair(key.key_due, key.slot); };
    std::ranges::sort(live, {}, whole);
    const auto end = std::unique(
        live.begin(), live.end(), [&](const Key& a, const Key& b) { return whole(a) == whole(b); });
    Keys kept;
    for (auto key = live.begin(); key != end; ++key) {
      kept.Add(*key);
    }
    keys_ = std::move(kept);
  }

  Keys keys_;
};

// A job in the boot wheel is keyed at its due tick or later, plus the offset of the wall clock when
// it came. Those of a clock that was set forward since must not count for ever: a group of jobs is
// forgotten when nothing in the wheel is as early as the last of them.
class BootOffsets {
 public:
  void Add(Millis offset, wheel::Tick due) {
    young_.least = std::min(young_.least, offset);
    young_.last = std::max(young_.last, due);
  }

  // `next`: nothing in the wheel is due before.
  void Forget(wheel::Tick next) {
    if (old_.last < next) {
      old_ = std::exchange(young_, {});
    }
  }

  // Of the jobs that may be in the wheel; none: no job is.
  std::optional<Millis> Least(wheel::Tick next) const {
    const Millis least = std::min(old_.LeastFrom(next), young_.LeastFrom(next));
    return least == Millis::max() ? std::nullopt : std::optional(least);
  }

 private:
  struct Group {
    Millis least{Millis::max()};
    wheel::Tick last = 0;

    Millis LeastFrom(wheel::Tick next) const { return last < next ? Millis::max() : least; }
  };

  Group old_;  // nothing is added any more
  Group young_;
};

}  // namespace delayd::engine
