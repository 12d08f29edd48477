// daemon/engine/low_water_mark.h — the smallest key_due among the jobs that have fired and are not
// finished.
//
// What:    below the low-water mark the store holds nothing but tombstones, so no seek may ever go
//          there. The jobs that still wait are bounded by their wheel; this keeps the bound of the
//          others. Jobs fire in the order of their keys, mostly: the queue's row.
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
    const auto end = std::unique(live.begin(), live.end(), [&](const Key& a, const Key& b) {
      return whole(a) == whole(b);
    });
    Keys kept;
    for (auto key = live.begin(); key != end; ++key) {
      kept.Add(*key);
    }
    keys_ = std::move(kept);
  }

  Keys keys_;
};

}  // namespace delayd::engine
