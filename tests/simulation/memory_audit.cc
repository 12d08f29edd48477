#include "tests/simulation/memory_audit.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/limits.h"
#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::engine {

using storage::Table;

std::string MemoryAudit::Run() {
  TallyEntries();
  CheckQueues();
  CheckSums();
  CheckLagging();
  CheckRows();
  return found_;
}

void MemoryAudit::Require(bool holds, const std::string& what) {
  if (!holds && found_.empty()) {
    found_ = "memory: " + what;
  }
}

void MemoryAudit::TallyEntries() {
  for (Slot slot = 0; slot < core_.jobs_.slot_count(); ++slot) {
    const JobEntry& entry = core_.jobs_[slot];
    if (entry.phase() == Phase::kFree) {
      continue;
    }
    for (Tally* const tally : {&all_, &of_queue_[entry.queue()]}) {
      const bool ready = entry.phase() == Phase::kReady;
      tally->held += core_.IsDroppable(slot) ? 1U : 0U;
      tally->ready += ready ? 1U : 0U;
      tally->urgent += ready && entry.priority() < limits::kPriorityDefault ? 1U : 0U;
      tally->leased += entry.phase() == Phase::kLeased ? 1U : 0U;
      tally->damaged += entry.phase() == Phase::kDamaged ? 1U : 0U;
    }
    if (entry.phase() == Phase::kScheduled) {
      core_.MomentOfTimer(entry);  // which must be there
    }
  }
}

void MemoryAudit::CheckQueues() {
  core_.queues_.ForEach([this](const Queue& queue) {
    const Tally tally = of_queue_[queue.id];
    Require(queue.held == tally.held && queue.ready.size() == tally.ready &&
                queue.urgent == tally.urgent && queue.leased == tally.leased &&
                queue.damaged == tally.damaged,
            "the counts of queue " + queue.name + " are not those of its jobs");
    Require(queue.counts.pending >= tally.held + tally.leased + tally.damaged,
            "queue " + queue.name + " has more jobs in memory than there are");
    Require(!queue.frontier || *queue.frontier <= core_.frontier_,
            "the frontier of queue " + queue.name + " is behind the common one");
  });
}

void MemoryAudit::CheckSums() {
  Require(core_.held_ == all_.held, "scheduled and ready jobs are miscounted");
  Require(core_.leases_.size() == all_.leased, "leases are miscounted");
  Require(core_.fired_count_ == all_.ready + all_.leased + all_.damaged,
          "jobs that have fired are miscounted");
  QueueTable::Sums sums;
  core_.queues_.ForEach([&sums](const Queue& queue) {
    sums.stored += queue.stored ? 1U : 0U;
    sums.pending += queue.counts.pending;
    sums.dead += queue.counts.dead;
    sums.urgent += queue.urgent;
  });
  const QueueTable::Sums& kept = core_.queues_.sums();
  Require(kept.stored == sums.stored && kept.pending == sums.pending && kept.dead == sums.dead &&
              kept.urgent == sums.urgent,
          "the sums of all queues are not those of each");
}

void MemoryAudit::CheckLagging() {
  size_t count = 0;
  size_t held = 0;
  std::optional<uint64_t> least_held;
  WallTime first = kNothingFar;
  WallTime first_hungry = kNothingFar;
  core_.queues_.ForEach([&](const Queue& queue) {
    if (!queue.frontier) {
      return;
    }
    ++count;
    held += queue.held;
    least_held = std::min(least_held.value_or(queue.held), queue.held);
    first = std::min(first, queue.frontier->first);
    if (queue.ready.empty()) {
      first_hungry = std::min(first_hungry, queue.frontier->first);
    }
  });
  const LaggingQueues& lagging = core_.lagging_;
  Require(lagging.size() == count && lagging.held() == held && lagging.first() == first &&
              lagging.first_hungry() == first_hungry &&
              (count == 0 || lagging.least_held() == *least_held),
          "what is known of all lagging queues is not so of each");
}

// As they will be when all changes are durable.
void MemoryAudit::CheckRows() {
  const auto check = [this](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    const auto head = storage::DecodeTimerHead(key, value);
    DELAYD_CHECK(parts.ok() && head.ok());
    CheckRow({parts->key_due, parts->id}, head->queue);
  };
  const Status scanned = core_.store_.Scan(
      Table::kTimers, std::string(1, '\0'), {}, [&](std::string_view key, std::string_view value) {
        if (!core_.pending_.IsChanging(Table::kTimers, key)) {
          check(key, value);
        }
        return true;
      });
  DELAYD_CHECK(scanned.ok());
  core_.pending_.ForEachPut(Table::kTimers, check);
}

void MemoryAudit::CheckRow(const Frontier& place, QueueId id) {
  const std::string whose = "job " + std::to_string(ToInt(place.second));
  Require(place.first >= core_.low_water_mark_.decided(), whose + " is keyed below the mark");
  if (const std::optional<Slot> slot = core_.jobs_.Find(place.second)) {
    Require(core_.jobs_[*slot].key_due() == place.first,
            whose + " has its row at another place than memory knows");
    return;
  }
  const Queue& queue = core_.queues_[id];
  const auto& left = core_.left_on_disk_.from();
  const bool is_behind = queue.frontier
                             ? place >= *queue.frontier
                             : place >= core_.frontier_ && place.first >= core_.far_begins_;
  Require(is_behind || (left && place >= *left),
          whose + " is on disk only, before where queue " + queue.name + " is loaded from");
  Require(place.first >= core_.FirstOnDisk(), whose + " is before the first on disk");
}

}  // namespace delayd::engine
