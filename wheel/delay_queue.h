// wheel/delay_queue.h — a queue whose elements can be taken once their time has come.
//
// Units:   ticks (wheel/timer.h); the queue reads no clock. Never early; elements with equal due
//          ticks come out first in, first out.
// Errors:  none; for a stale handle the answer is false. A handle's number is reused after 2^32
//          uses of one place.
// Threads: one owner. To share one between threads and sleep on it: wheel/blocking_delay_queue.h.
// Cost:    Offer, Take, Remove, Update O(log n), NextExpiration O(1); sizeof(T) + 40 bytes each.
//          The wheel does the same in O(1); use this queue for few elements, or for elements that
//          are more than a number.
// Source:  the name and the verbs are those of java.util.concurrent.DelayQueue.
//
//   DelayQueue<std::string> queue;
//   queue.Offer("close order 7", now + 1000);
//   while (auto message = queue.Take(now)) { ... }
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "wheel/indexed_priority_queue.h"
#include "wheel/timer.h"

namespace delayd::wheel {

template <typename T>
class DelayQueue {
 public:
  TimerHandle Offer(T value, Tick due) {
    const uint32_t position = heap_.Add({due, sequence_++, std::move(value)});
    if (position >= generations_.size()) {
      generations_.resize(position + size_t{1}, 1);
    }
    return HandleAt(position);
  }

  // The element that has been due longest; nullopt if nothing is due at `now`.
  std::optional<T> Take(Tick now) {
    if (heap_.empty() || heap_.Top().due > now) {
      return std::nullopt;
    }
    ++generations_[heap_.TopHandle()];
    return heap_.Pop().value;
  }

  // The due tick of the first element, kNever if there is none.
  Tick NextExpiration() const { return heap_.empty() ? kNever : heap_.Top().due; }

  bool Remove(TimerHandle handle) {
    if (!Holds(handle)) {
      return false;
    }
    ++generations_[PositionOf(handle)];
    heap_.Remove(PositionOf(handle));
    return true;
  }

  // Sets a new due tick, earlier or later; the element goes behind those already due then.
  bool Update(TimerHandle handle, Tick due) {
    if (!Holds(handle)) {
      return false;
    }
    heap_.Modify(PositionOf(handle), [&](Element& element) {
      element.due = due;
      element.sequence = sequence_++;
    });
    return true;
  }

  size_t size() const { return heap_.size(); }

  bool empty() const { return heap_.empty(); }

 private:
  struct Element {
    Tick due;
    uint64_t sequence;
    T value;
  };

  struct SoonerDue {
    bool operator()(const Element& a, const Element& b) const {
      return a.due != b.due ? a.due < b.due : a.sequence < b.sequence;
    }
  };

  TimerHandle HandleAt(uint32_t position) const {
    return TimerHandle{(uint64_t{generations_[position]} << 32) | position};
  }

  static uint32_t PositionOf(TimerHandle handle) { return static_cast<uint32_t>(handle); }

  bool Holds(TimerHandle handle) const {
    return PositionOf(handle) < generations_.size() && HandleAt(PositionOf(handle)) == handle;
  }

  IndexedPriorityQueue<Element, SoonerDue> heap_;
  std::vector<uint32_t> generations_;  // by heap handle: the generation of its current or next user
  uint64_t sequence_ = 0;
};

}  // namespace delayd::wheel
