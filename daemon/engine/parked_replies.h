// daemon/engine/parked_replies.h — answers that wait for the commit they rest on.
//
// Threads: the engine's owner.
// Cost:    no allocation per answer but the growth of a vector per commit under way; what becomes
//          ready is handed over as it lies there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "daemon/engine/command.h"

namespace delayd::engine {

class ParkedReplies {
 public:
  // Until the commit with the reply's sequence.
  void Park(Reply reply) {
    auto at = buckets_.end();
    while (at != buckets_.begin() && std::prev(at)->sequence > reply.sequence) {
      --at;
    }
    if (at == buckets_.begin() || std::prev(at)->sequence != reply.sequence) {
      at = std::next(buckets_.insert(at, {.sequence = reply.sequence, .replies = {}}));
      // Batches are mostly alike, and to move the replies of one while it grows costs more than
      // they do.
      std::prev(at)->replies.reserve(last_released_);
    }
    std::prev(at)->replies.push_back(std::move(reply));
    ++size_;
  }

  // Appends to `ready` all that rest on commits up to this one, in the order of the commits.
  void Release(uint64_t sequence, std::vector<Reply>* ready) {
    while (!buckets_.empty() && buckets_.front().sequence <= sequence) {
      std::vector<Reply>& replies = buckets_.front().replies;
      size_ -= replies.size();
      last_released_ = replies.size();
      if (ready->empty()) {
        ready->swap(replies);
      } else {
        std::ranges::move(replies, std::back_inserter(*ready));
      }
      buckets_.pop_front();
    }
  }

  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (Bucket& bucket : buckets_) {
      std::ranges::for_each(bucket.replies, visit);
    }
  }

  size_t size() const { return size_; }

 private:
  struct Bucket {
    uint64_t sequence = 0;
    std::vector<Reply> replies;
  };

  std::deque<Bucket> buckets_;  // by sequence
  size_t size_ = 0;
  size_t last_released_ = 0;  // by one commit
};

}  // namespace delayd::engine
