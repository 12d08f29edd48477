// daemon/engine/parked_replies.h — answers that wait for the commit they rest on.
//
// Threads: the engine's owner.
// Cost:    no allocation per answer except the growth of one vector per commit under way, which is
//          handed over as it is when its commit is done. Find takes a step for each commit under
//          way, and looks at each parked reply once over all calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "daemon/engine/command.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace delayd::engine {

class ParkedReplies {
 public:
  // Keeps the reply until the commit with its sequence.
  void Park(Reply reply) {
    auto at = buckets_.end();
    while (at != buckets_.begin() && std::prev(at)->sequence > reply.sequence) {
      --at;
    }
    if (at == buckets_.begin() || std::prev(at)->sequence != reply.sequence) {
      Bucket bucket;
      bucket.sequence = reply.sequence;
      at = std::next(buckets_.insert(at, std::move(bucket)));
      // Batches are mostly alike in size, and moving the replies of one while its vector grows
      // costs more than adding them.
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

  // The answer to this request; null when it is not here or `is_wanted` is false for it.
  // `is_wanted` must be the same for every call, as its results are kept: when ten thousand clients
  // disconnect at once, each is looked for.
  template <typename Wanted>
  Reply* Find(RequestId request, const Wanted& is_wanted) {
    for (Bucket& bucket : buckets_) {
      for (; bucket.noted < bucket.replies.size(); ++bucket.noted) {
        if (is_wanted(std::as_const(bucket.replies[bucket.noted]))) {
          bucket.wanted.emplace(bucket.replies[bucket.noted].request, bucket.noted);
        }
      }
      if (const auto found = bucket.wanted.find(request); found != bucket.wanted.end()) {
        return &bucket.replies[found->second];
      }
    }
    return nullptr;
  }

  size_t size() const { return size_; }

 private:
  struct Bucket {
    uint64_t sequence = 0;
    std::vector<Reply> replies;
    size_t noted = 0;  // how many of them have been looked at
    boost::unordered_flat_map<RequestId, size_t> wanted;
  };

  std::deque<Bucket> buckets_;  // by sequence
  size_t size_ = 0;
  size_t last_released_ = 0;  // by one commit
};

}  // namespace delayd::engine
