// daemon/engine/waiting_line.h — the lease requests that wait for one queue, first come first.
//
// What:    who leaves from the middle keeps his place until the front gets there, or until such
//          places are the greater part: ten thousand workers that wait for the same hundred queues
//          and go together would else be looked for, and closed up behind, a hundred times each.
// Errors:  none; an id that has left must not come again.
// Threads: one owner.
// Cost:    O(1) to join, O(1) to leave in the mean; 8 bytes a place.
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

  // With those of who has left: twice as many at most.
  size_t places() const { return places_.size(); }

  RequestId front() const { return places_.front(); }

  // Once for each time that the request names the queue.
  void Join(RequestId request) {
    places_.push_back(request);
    ++waiting_;
  }

  // So is this, and `waits` tells no longer of the request, but of all others in the line.
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
