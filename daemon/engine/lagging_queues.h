// daemon/engine/lagging_queues.h — the queues that lag behind the others, and which of them wants
// to be loaded first.
//
// What:    such a queue has a frontier of its own, before the common one (backlog.cc). Three
//          figures are kept over all of them: the first frontier, the first frontier of a queue
//          without a ready job, and the fewest jobs that one of them holds in memory. There may be
//          100,000, and every turn asks.
// Units:   jobs; frontiers are places in the store's order of timers.
// Threads: one owner. A queue must not move in memory while it lags.
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
  // The queue lags from `from` on; if it lags already, its frontier moves there.
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

  // CatchUp for all whose frontier is not before `place`.
  void CatchUpFrom(const Frontier& place) {
    for (size_t i = queues_.size(); i > 0; --i) {
      if (*queues_[i - 1]->frontier >= place) {
        CatchUp(queues_[i - 1]);
      }
    }
  }

  // The queue, which need not lag, holds `by` more jobs in memory.
  void NoteHeld(Queue* queue, int by) {
    if (queue->frontier) {
      held_ += static_cast<size_t>(by);
      helds_.Update(queue->held_place, queue->held);
    }
  }

  // The queue, which need not lag, has got a ready job.
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

  // Goes round all of them, one queue a call.
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

  // How many jobs of all of them are in memory.
  size_t held() const { return held_; }

  // How many jobs the queue with the fewest has in memory; there must be a queue.
  size_t least_held() const { return helds_.Top(); }

  // The time of the first frontier; kNothingFar: none lags.
  WallTime first() const { return frontiers_.empty() ? kNothingFar : frontiers_.Top(); }

  // The same for those without a ready job.
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
  wheel::IndexedPriorityQueue<uint64_t> helds_;      // how many jobs each holds
  wheel::IndexedPriorityQueue<WallTime> frontiers_;  // their times
  wheel::IndexedPriorityQueue<WallTime> hungry_;     // the times of those without a ready job
};

}  // namespace delayd::engine
