// daemon/engine/waiting_line.h — the lease requests that wait for one queue, first come first.
//
// What:    a request that leaves from the middle keeps its place until the front gets there, or
//          until such places are the greater part. Otherwise, when ten thousand workers that wait
//          for the same hundred queues leave together, each would be searched for, and its gap
//          closed, a hundred times.
// Errors:  none; an id that has left must not join again.
// Threads: one owner.
// Cost:    O(1) to join, amortised O(1) to leave; 8 bytes a place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

#include "base/check.h"
#include "daemon/engine/command.h"

#include <boost/container/deque.hpp>

namespace delayd::engine {

class WaitingLine {
 public:
  bool empty() const { return places_.empty(); }

  size_t size() const { return waiting_; }

  // With the places of requests that have left: at most twice size().
  size_t places() const { return places_.size(); }

  RequestId front() const { return places_.front(); }

  // Called once for each time that the request names the queue.
  void Join(RequestId request) {
    places_.push_back(request);
    ++waiting_;
  }

  // Called likewise, after the request stopped waiting: `waits` is false for it, and true for all
  // others that are still in the line.
  template <typename Waits>
  void Left(const Waits& waits) {
    DELAYD_CHECK(waiting_ > 0);
    --waiting_;
    while (!places_.empty() && !waits(places_.front())) {
      places_.pop_front();
    }
    if (places_.size() > 2 * waiting_) {
      const auto gone = std::remove_if(places_.begin(), places_.end(), std::not_fn(waits));
      places_.erase(gone, places_.end());
    }
  }

 private:
  // An empty std::deque takes 576 bytes.
  boost::container::deque<RequestId> places_;
  size_t waiting_ = 0;  // of them
};

}  // namespace delayd::engine
