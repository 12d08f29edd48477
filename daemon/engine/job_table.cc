#include "daemon/engine/job_table.h"

#include <limits>

#include "base/check.h"

namespace delayd::engine {

JobTable::JobTable() : index_(0, Hash{&slots_}, Equal{&slots_}) {}

Slot JobTable::Add(const JobEntry& entry) {
  DELAYD_CHECK(entry.phase() != Phase::kFree);
  Slot slot = 0;
  if (free_.empty()) {
    DELAYD_CHECK(slots_.size() < std::numeric_limits<Slot>::max());
    slot = static_cast<Slot>(slots_.size());
    slots_.push_back(entry);
  } else {
    slot = free_.back();
    free_.pop_back();
    slots_[slot] = entry;
  }
  const bool added = index_.insert(slot).second;
  DELAYD_CHECK(added);
  return slot;
}

void JobTable::Remove(Slot slot) {
  const auto found = index_.find(slots_[slot].id());
  DELAYD_CHECK(found != index_.end());
  DELAYD_CHECK(*found == slot);
  index_.erase(found);
  slots_[slot] = JobEntry();
  free_.push_back(slot);
}

std::optional<Slot> JobTable::Find(JobId id) const {
  const auto found = index_.find(id);
  return found == index_.end() ? std::nullopt : std::optional<Slot>(*found);
}

}  // namespace delayd::engine
