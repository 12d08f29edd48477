#include "daemon/engine/queue_table.h"

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
  if (position >= by_id_.size()) {
    by_id_.resize(position + 1);
  }
  by_id_[position] = std::make_unique<Queue>();
  by_id_[position]->id = id;
  by_id_[position]->name = name;
  by_id_[position]->stored = true;
  by_name_.emplace(std::string(name), by_id_[position].get());
  return OkStatus();
}

Queue& QueueTable::Create(std::string_view name) {
  auto id = static_cast<QueueId>(by_id_.empty() ? 1 : by_id_.size());
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  }
  const Status restored = Restore(id, name);
  DELAYD_CHECK(restored.ok());
  Queue& queue = (*this)[id];
  queue.stored = false;
  return queue;
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

void QueueTable::CollectFree() {
  for (uint32_t id = 1; id < by_id_.size(); ++id) {
    if (by_id_[id] == nullptr) {
      free_.push_back(QueueId{id});
    }
  }
}

void QueueTable::Remove(QueueId id) {
  by_name_.erase((*this)[id].name);
  by_id_[ToInt(id)].reset();
}

}  // namespace delayd::engine
