// Forgets queues of which nothing is left: names that clients have made up for one job each must
// not stay in memory and on disk for ever.
#include <utility>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

// How many queues a batch looks at, beyond those that became empty since the last one: a queue that
// is in use is looked at again.
constexpr size_t kLooksMax = limits::Bound(64, 1);

bool IsInUse(const Queue& queue, BootTime now) {
  return queue.to_serve || !queue.waiters.empty() || queue.pause || queue.frontier ||
         queue.rate_timer || !queue.bucket.IsFull(now);
}

}  // namespace

// Called when the counts of the queue have changed, or were read.
void EngineCore::NoteEmpty(Queue& queue) {
  if (queue.among_empty) {
    empty_queues_.erase(*queue.among_empty);
    queue.among_empty.reset();
  }
  if (queue.counts.IsEmpty()) {
    queue.among_empty = empty_queues_.insert(empty_queues_.end(), queue.id);
    ++newly_empty_;
  }
}

// The queue that has been empty for longest goes first; one that is in use goes to the end of the
// line.
void EngineCore::ForgetQueues() {
  size_t looks = std::exchange(newly_empty_, 0) + kLooksMax;
  for (; looks > 0 && empty_queues_.size() > options_.empty_queues_max; --looks) {
    const Queue& queue = queues_[empty_queues_.front()];
    if (IsInUse(queue, now_.boot)) {
      empty_queues_.splice(empty_queues_.end(), empty_queues_, empty_queues_.begin());
      continue;
    }
    empty_queues_.pop_front();
    pending_.Delete(Table::kQueues, queue.name);
    pending_.Delete(Table::kMeta, storage::QueueCountsKey(queue.id));
    queues_.Forget(queue);
  }
}

}  // namespace delayd::engine
