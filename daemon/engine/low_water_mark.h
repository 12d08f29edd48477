// daemon/engine/low_water_mark.h — the smallest key_due among the jobs that have fired and are not
// finished.
//
// Below the low-water mark the store holds nothing but tombstones, so no seek may ever go there.
// The jobs that still wait are bounded by their wheel; this keeps the bound of the others. Threads:
// one owner. Cost:    O(log n) amortised; entries of finished jobs go when they reach the top or
// outnumber the live ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/job.h"
#include "base/time.h"

namespace delayd::engine {

class FiredKeys {
 public:
  // (key_due, id)
  using Key = std::pair<WallTime, JobId>;

  void Add(WallTime key_due, JobId id) {
    heap_.emplace_back(key_due, id);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  // `is_live(key)` tells whether that job still is where the key says. `live` is how many such jobs
  // there are.
  template <typename IsLive>
  std::optional<WallTime> Min(size_t live, const IsLive& is_live) {
    if (heap_.size() > 2 * live + 1024) {
      std::erase_if(heap_, [&](const Key& key) { return !is_live(key); });
      std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    while (!heap_.empty() && !is_live(heap_.front())) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
    }
    return heap_.empty() ? std::nullopt : std::optional(heap_.front().first);
  }

 private:
  std::vector<Key> heap_;
};

}  // namespace delayd::engine
