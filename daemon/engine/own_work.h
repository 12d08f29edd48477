// daemon/engine/own_work.h — how much of what the engine changes by itself is not durable yet:
// leases that end by their time or with their connection, jobs that expire.
//
// What:    requests of clients are bounded by reading no more of them. The engine's own changes are
//          bounded here: otherwise a million leases that end together would be as many rows in
//          memory, and everybody's answers would wait behind them.
// Units:   jobs.
// Threads: one owner.
// Cost:    O(1); a batch under way with such jobs takes 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/limits.h"

namespace delayd::engine {

class OwnWork {
 public:
  void Note() {
    ++open_;
    ++sum_;
  }

  // The open batch was closed as number `batch`.
  void Close(uint64_t batch) {
    if (open_ > 0) {
      underway_.emplace_back(batch, std::exchange(open_, 0));
    }
  }

  void Committed(uint64_t batch) {
    while (!underway_.empty() && underway_.front().first <= batch) {
      sum_ -= underway_.front().second;
      underway_.pop_front();
    }
  }

  // A commit must come first; it starts the next turn.
  bool is_full() const { return sum_ >= limits::kOwnWorkMax; }

 private:
  size_t open_ = 0;
  size_t sum_ = 0;
  std::deque<std::pair<uint64_t, size_t>> underway_;
};

}  // namespace delayd::engine
