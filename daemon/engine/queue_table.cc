#include "daemon/engine/queue_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace delayd::engine {

namespace {

bool IsUnused(const Queue& queue) {
  return !queue.stored && queue.waiters.empty() && !queue.to_serve;
}

}  // namespace

size_t QueueTable::StringHash::operator()(std::string_view text) const {
  return XXH3_64bits(text.data(), text.size());
}

Queue* QueueTable::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Queue& QueueTable::operator[](QueueId id) {
  DELAYD_CHECK(Has(id));
  return *by_id_[ToInt(id)];
}

const Queue& QueueTable::operator[](QueueId id) const {
  DELAYD_CHECK(Has(id));
  return *by_id_[ToInt(id)];
}

Status QueueTable::CheckKnown(QueueId id, JobId job) const {
  return Has(id) ? OkStatus()
                 : DataLoss("job " + std::to_string(ToInt(job)) + " is in queue number " +
                                std::to_string(ToInt(id)) +
                                ", which is not known; run 'delayctl verify', and, where rows "
                                "were lost, 'delayctl recover --accept-loss', which names the "
                                "queue anew",
                            "damaged");
}

Status QueueTable::Restore(QueueId id, std::string_view name) {
  const uint32_t position = ToInt(id);
  if (position == 0 || position > limits::kQueueIdMax ||
      (position < by_id_.size() && by_id_[position] != nullptr)) {
    return DataLoss("queue " + std::string(name) + ": its id " + std::to_string(position) +
                    " belongs to another queue or to none; run 'delayctl verify'");
  }
  NoteStored(&Insert(id, name));
  return OkStatus();
}

Queue& QueueTable::Insert(QueueId id, std::string_view name) {
  if (ToInt(id) >= by_id_.size()) {
    by_id_.resize(ToInt(id) + 1);
  }
  std::unique_ptr<Queue>& queue = by_id_[ToInt(id)];
  queue = std::make_unique<Queue>();
  queue->id = id;
  queue->name = name;
  by_name_.emplace(std::string(name), queue.get());
  return *queue;
}

Queue& QueueTable::Create(std::string_view name) {
  auto id = static_cast<QueueId>(by_id_.empty() ? 1 : by_id_.size());
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  }
  DELAYD_CHECK(ToInt(id) <= limits::kQueueIdMax);
  return Insert(id, name);
}

void QueueTable::NoteStored(Queue* queue) {
  queue->stored = true;
  ++sums_.stored;
}

void QueueTable::Restore(Queue* queue, const storage::QueueCounts& counts) {
  queue->counts = counts;
  sums_.pending += counts.pending;
  sums_.dead += counts.dead;
}

void QueueTable::Count(Queue* queue, const CountsChange& by) {
  queue->counts.pending += static_cast<uint64_t>(by.pending);
  queue->counts.dead += static_cast<uint64_t>(by.dead);
  sums_.pending += static_cast<uint64_t>(by.pending);
  sums_.dead += static_cast<uint64_t>(by.dead);
}

void QueueTable::CountUrgent(Queue* queue, int by) {
  queue->urgent += static_cast<uint64_t>(by);
  sums_.urgent += static_cast<uint64_t>(by);
}

void QueueTable::RemoveIfUnused(const Queue& queue) {
  if (IsUnused(queue)) {
    unused_.push_back(queue.id);
  }
}

void QueueTable::RemoveUnused() {
  for (const QueueId id : unused_) {
    if (Has(id) && IsUnused((*this)[id])) {
      Remove(id);
      free_.push_back(id);
    }
  }
  unused_.clear();
}

void QueueTable::Forget(const Queue& queue) {
  const QueueId id = queue.id;
  Remove(id);
  resting_.emplace_back(id, written_);
}

void QueueTable::Written(uint64_t bytes) {
  written_ += bytes;
  while (!resting_.empty() && written_ - resting_.front().second >= limits::kQueueIdRestBytes) {
    free_.push_back(resting_.front().first);
    resting_.pop_front();
  }
}

void QueueTable::CollectFree(std::vector<QueueId> lost) {
  lost_ = std::move(lost);
  if (!lost_.empty() && ToInt(lost_.back()) >= by_id_.size()) {
    by_id_.resize(ToInt(lost_.back()) + 1);
  }
  for (uint32_t id = 1; id < by_id_.size(); ++id) {
    if (by_id_[id] == nullptr && !IsLost(QueueId{id})) {
      free_.push_back(QueueId{id});
    }
  }
}

void QueueTable::Remove(QueueId id) {
  sums_.stored -= (*this)[id].stored ? 1U : 0U;
  by_name_.erase((*this)[id].name);
  by_id_[ToInt(id)].reset();
}

}  // namespace delayd::engine
