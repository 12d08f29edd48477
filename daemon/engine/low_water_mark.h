// daemon/engine/low_water_mark.h — the smallest key_due among the jobs that have fired and are not
// finished.
//
// What:    below the low-water mark the store holds nothing but tombstones, so no seek may ever go
//          there. The jobs that still wait are bounded by their wheel; this keeps the bound of the
//          others. Jobs fire in the order of their keys, mostly: those stand in a row, and only one
//          that comes late goes to a heap.
// Threads: one owner.
// Cost:    O(1), and O(log n) for one that comes late, amortised; entries of finished jobs go when
//          they come first or outnumber the live ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "base/time.h"
#include "daemon/engine/job_table.h"

namespace delayd::engine {

class FiredKeys {
 public:
  // Another job may have the slot by now. If it has fired under the same key_due, that is a live
  // key all the same.
  struct Key {
    WallTime key_due;
    Slot slot = 0;

    friend bool operator>(const Key& a, const Key& b) { return a.key_due > b.key_due; }
  };

  void Add(WallTime key_due, Slot slot) {
    if (row_.empty() || row_.back().key_due <= key_due) {
      row_.push_back({key_due, slot});
      return;
    }
    late_.push_back({key_due, slot});
    std::push_heap(late_.begin(), late_.end(), std::greater<>());
  }

  // `is_live(key)` tells whether that slot has a job that has fired under that key. `live` is how
  // many jobs have fired.
  template <typename IsLive>
  std::optional<WallTime> Min(size_t live, const IsLive& is_live) {
    if (row_.size() + late_.size() > 2 * live + 1024) {
      const auto is_dead = [&is_live](const Key& key) { return !is_live(key); };
      std::erase_if(row_, is_dead);
      std::erase_if(late_, is_dead);
      std::make_heap(late_.begin(), late_.end(), std::greater<>());
    }
    while (!row_.empty() && !is_live(row_.front())) {
      row_.pop_front();
    }
    while (!late_.empty() && !is_live(late_.front())) {
      std::pop_heap(late_.begin(), late_.end(), std::greater<>());
      late_.pop_back();
    }
    std::optional<WallTime> min;
    if (!row_.empty()) {
      min = row_.front().key_due;
    }
    if (!late_.empty() && (!min || late_.front().key_due < *min)) {
      min = late_.front().key_due;
    }
    return min;
  }

 private:
  std::deque<Key> row_;    // in rising order
  std::vector<Key> late_;  // a heap
};

}  // namespace delayd::engine
