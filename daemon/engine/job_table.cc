#include "daemon/engine/job_table.h"

#include <limits>

#include "base/check.h"

namespace delayd::engine {

JobTable::JobTable() : parts_(kParts, Part(0, Hash{&slots_}, Equal{&slots_})) {}

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
  const bool added = parts_[PartOf(entry.id())].insert(slot).second;
  DELAYD_CHECK(added);
  ++size_;
  return slot;
}

void JobTable::Remove(Slot slot) {
  const JobId id = slots_[slot].id();
  Part& part = parts_[PartOf(id)];
  const auto found = part.find(id);
  DELAYD_CHECK(found != part.end());
  DELAYD_CHECK(*found == slot);
  part.erase(found);
  --size_;
  slots_[slot] = JobEntry();
  free_.push_back(slot);
}

std::optional<Slot> JobTable::Find(JobId id) const {
  const Part& part = parts_[PartOf(id)];
  const auto found = part.find(id);
  return found == part.end() ? std::nullopt : std::optional<Slot>(*found);
}

}  // namespace delayd::engine
