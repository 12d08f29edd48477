// daemon/engine/lagging_queues.h — the queues that lag behind the others, and which of them wants
// to be loaded first.
//
// What:    such a queue has a frontier of its own, before the common one (backlog.cc). Of all of
//          them are known the first frontier, the first of those that have no ready job, and the
//          fewest jobs that one holds in memory: there may be 100,000, and every turn asks.
// Units:   jobs; frontiers are places in the store's order of timers.
// Threads: one owner. A queue that lags stays where it is in memory.
// Cost:    O(log n) in the lagging queues for each change; O(1) for one that does not lag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "daemon/engine/frontier.h"
#include "daemon/engine/queue_table.h"
#include "wheel/indexed_priority_queue.h"

namespace delayd::engine {

class LaggingQueues {
 public:
  // It lags, from there on; or its frontier moves there.
  void Lag(Queue* queue, const Frontier& from) {
    if (!queue->frontier) {
      queue->lagging_place = queues_.size();
      queues_.push_back(queue);
      held_ += queue->held;
      queue->held_place = helds_.Add(queue->held);
      queue->frontier_place = frontiers_.Add(from.first);
    }
    queue->frontier = from;
    frontiers_.Update(queue->frontier_place, from.first);
    SetHunger(queue);
  }

  // Its frontier is the common one again.
  void CatchUp(Queue* queue) {
    queues_[queue->lagging_place] = queues_.back();
    queues_[queue->lagging_place]->lagging_place = queue->lagging_place;
    queues_.pop_back();
    held_ -= queue->held;
    helds_.Remove(queue->held_place);
    frontiers_.Remove(queue->frontier_place);
    queue->frontier.reset();
    SetHunger(queue);
  }

  // All whose frontier is not before this.
  void CatchUpFrom(const Frontier& place) {
    for (size_t i = queues_.size(); i > 0; --i) {
      if (*queues_[i - 1]->frontier >= place) {
        CatchUp(queues_[i - 1]);
      }
    }
  }

  // So many jobs more, or fewer, of this queue are in memory, which lags or does not.
  void NoteHeld(Queue* queue, int by) {
    if (queue->frontier) {
      held_ += static_cast<size_t>(by);
      helds_.Update(queue->held_place, queue->held);
    }
  }

  // The queue, which lags or does not, has got a ready job.
  void NoteReady(Queue* queue) {
    if (queue->hunger) {
      SetHunger(queue);
    }
  }

  // It has lost one.
  void NoteNotReady(Queue* queue) {
    if (IsHungry(*queue)) {
      SetHunger(queue);
    }
  }

  const Queue& First() const { return *queues_.front(); }

  // One after the other.
  Queue& Next() {
    next_ = (next_ + 1) % queues_.size();
    return *queues_[next_];
  }

  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Queue* queue : queues_) {
      visit(*queue);
    }
  }

  bool empty() const { return queues_.empty(); }

  size_t size() const { return queues_.size(); }

  // Jobs of all of them that are in memory.
  size_t held() const { return held_; }

  // Of the one with the fewest; there must be one.
  size_t least_held() const { return helds_.Top(); }

  // The time of the first frontier; kNothingFar: none lags.
  WallTime first() const { return frontiers_.empty() ? kNothingFar : frontiers_.Top(); }

  // Of those that have no ready job.
  WallTime first_hungry() const { return hungry_.empty() ? kNothingFar : hungry_.Top(); }

 private:
  static bool IsHungry(const Queue& queue) { return queue.frontier && queue.ready.empty(); }

  void SetHunger(Queue* queue) {
    if (queue->hunger) {
      hungry_.Remove(*queue->hunger);
      queue->hunger.reset();
    }
    if (IsHungry(*queue)) {
      queue->hunger = hungry_.Add(queue->frontier->first);
    }
  }

  std::vector<Queue*> queues_;
  size_t next_ = 0;
  size_t held_ = 0;
  wheel::IndexedPriorityQueue<uint64_t> helds_;      // what each holds
  wheel::IndexedPriorityQueue<WallTime> frontiers_;  // the time of each one's
  wheel::IndexedPriorityQueue<WallTime> hungry_;     // of those that have no ready job
};

}  // namespace delayd::engine
