// daemon/engine/parked_replies.h — answers that wait for the commit they rest on.
//
// Threads: the engine's owner.
// Cost:    no allocation per answer but the growth of a vector per commit under way; what becomes
//          ready is handed over as it lies there. One is found in as many steps as there are
//          commits under way; who looks for one in a thousand pays for a look at each of them,
//          once.
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
  // Until the commit with the reply's sequence.
  void Park(Reply reply) {
    auto at = buckets_.end();
    while (at != buckets_.begin() && std::prev(at)->sequence > reply.sequence) {
      --at;
    }
    if (at == buckets_.begin() || std::prev(at)->sequence != reply.sequence) {
      Bucket bucket;
      bucket.sequence = reply.sequence;
      at = std::next(buckets_.insert(at, std::move(bucket)));
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

  // The answer to this request; null when it is not here, or none of those that `is_wanted` tells
  // of, which is the same for every call. Ten thousand clients that go at once are each looked for.
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
    size_t noted = 0;  // so many of them have been looked at
    boost::unordered_flat_map<RequestId, size_t> wanted;
  };

  std::deque<Bucket> buckets_;  // by sequence
  size_t size_ = 0;
  size_t last_released_ = 0;  // by one commit
};

}  // namespace delayd::engine
