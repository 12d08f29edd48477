// Which jobs are in memory: those due within the horizon, as far as the budget goes (P10). The
// others lie on disk until their time comes near, and cost nothing but a look into the index when
// they are changed.
//
// The frontier is a place in the store's order of timers, (key_due, id). A job before it is in
// memory, a job at or behind it is not; that is decided by the same comparison when a job is
// enqueued, moved or loaded, so none is lost or doubled at the border. The exceptions, in memory
// behind the frontier, are leased jobs and jobs that were due when they came: a load passes over
// what it finds in memory.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/crash_point.h"
#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

JobState EngineCore::Settle(const storage::JobRecord& record,
                            WallTime key_due,
                            std::optional<Slot> slot) {
  // What is due at once need not wait for the frontier, when that has fallen behind.
  const bool due_now = key_due <= LatestKeyOfNow() && jobs_.size() < options_.memory_jobs_max;
  if (!due_now && !IsNear(key_due, record.id)) {
    if (slot) {
      Forget(*slot);
    }
    far_begins_ = std::min(far_begins_, key_due);
    return JobState::kScheduled;
  }
  if (slot) {
    Unplace(*slot);
    jobs_[*slot].set_key_due(key_due);
    jobs_[*slot].set_priority(record.priority);
  } else {
    JobEntry entry(record.id, record.queue, key_due, record.priority);
    entry.set_phase(Phase::kScheduled);
    slot = jobs_.Add(entry);
  }
  Place(*slot, record);
  return jobs_[*slot].phase() == Phase::kReady ? JobState::kReady : JobState::kScheduled;
}

// No job whose moment has come is keyed behind this. A relative job was keyed on the wall clock as
// it stood then, ahead of the boot clock by wall_offset_max_ at most; a job that was late when it
// came is keyed at the low-water mark.
WallTime EngineCore::LatestKeyOfNow() const {
  return std::max(LatestKeyByClocks(now_), low_water_mark_);
}

WallTime EngineCore::LatestKeyByClocks(const Now& now) const {
  return std::max(now.wall, WallTime(now.boot.time_since_epoch() + wall_offset_max_));
}

// Up to the first row that is on disk only, the frontier moves without a look at the disk.
void EngineCore::SlideFrontier() {
  const WallTime free = std::min(LatestKeyOfNow() + options_.horizon, far_begins_);
  frontier_ = std::max(frontier_, Frontier(free, JobId{}));
}

bool EngineCore::LoadAhead() {
  if (jobs_.size() > options_.memory_jobs_max + options_.memory_jobs_max / 4) {
    DropFarthest();
  }
  SlideFrontier();
  loading_ = loading_ || far_begins_ < LatestKeyOfNow() + options_.horizon / 2;
  if (!loading_ || jobs_.size() >= options_.memory_jobs_max) {
    return false;  // nothing to load, or no room: whoever makes room brings us here again
  }
  const WallTime target = LatestKeyOfNow() + options_.horizon;
  if (const Status loaded = LoadPage(target, Overdue::kThroughTheWheel); !loaded.ok()) {
    Die(loaded);
    return false;
  }
  loading_ = frontier_ < Frontier(target, JobId{});
  DELAYD_CRASH_POINT("horizon/page");
  return loading_ && jobs_.size() < options_.memory_jobs_max;
}

// Moves the frontier towards `target` by one page, and takes what it passes into memory: from the
// store, and from the batches on their way, which a scan does not see or sees in part.
Status EngineCore::LoadPage(WallTime target, Overdue overdue) {
  const size_t room = options_.memory_jobs_max - std::min(jobs_.size(), options_.memory_jobs_max);
  const size_t rows_max = std::min(limits::kLoadPageRows, std::max<size_t>(room, 1));
  const Frontier from = frontier_;
  Frontier next(target, JobId{});
  size_t rows = 0;
  WallTime first_behind = kNothingFar;
  Status failed;
  const auto take = [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    failed = parts.status();
    const bool ends_here = parts.ok() && (parts->key_due >= target || rows == rows_max);
    if (ends_here) {
      first_behind = parts->key_due;
      next = std::min(next, Frontier(parts->key_due, parts->id));
    } else if (failed.ok()) {
      ++rows;
      // Where a change is under way, its outcome is what counts: see below.
      if (!pending_.IsChanging(Table::kTimers, key)) {
        failed = LoadTimer(*parts, key, value, overdue);
      }
    }
    return failed.ok() && !ends_here;
  };
  DELAYD_RETURN_IF_ERROR(
      store_.Scan(Table::kTimers, storage::TimerKey(from.first, from.second), {}, take));
  DELAYD_RETURN_IF_ERROR(failed);
  pending_.ForEachPut(Table::kTimers, [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    DELAYD_CHECK(parts.ok());
    const Frontier place(parts->key_due, parts->id);
    if (place >= next) {
      first_behind = std::min(first_behind, parts->key_due);
    } else if (place >= from && failed.ok()) {
      failed = LoadTimer(*parts, key, value, overdue);
    }
  });
  frontier_ = next;
  far_begins_ = first_behind;
  return failed;
}

// Back to the budget, at the far end: what is dropped is on disk, and comes again when there is
// room.
void EngineCore::DropFarthest() {
  std::vector<Frontier> keys;
  keys.reserve(jobs_.size());
  const auto droppable = [this](Slot slot) {
    const Phase phase = jobs_[slot].phase();
    return phase == Phase::kScheduled || phase == Phase::kReady;
  };
  for (Slot slot = 0; slot < jobs_.slot_count(); ++slot) {
    if (droppable(slot)) {
      keys.emplace_back(jobs_[slot].key_due(), jobs_[slot].id());
    }
  }
  const size_t others = jobs_.size() - keys.size();
  const size_t keep = options_.memory_jobs_max - std::min(others, options_.memory_jobs_max);
  if (keep >= keys.size()) {
    return;
  }
  const auto cut = keys.begin() + static_cast<std::ptrdiff_t>(keep);
  std::nth_element(keys.begin(), cut, keys.end());
  frontier_ = std::min(frontier_, *cut);
  far_begins_ = std::min(far_begins_, cut->first);
  for (Slot slot = 0; slot < jobs_.slot_count(); ++slot) {
    if (droppable(slot) && !IsNear(jobs_[slot].key_due(), jobs_[slot].id())) {
      Forget(slot);
    }
  }
}

std::optional<Millis> EngineCore::UntilLoad(const Now& now) const {
  if (loading_ || far_begins_ == kNothingFar) {
    return std::nullopt;  // waits for room, which a command makes; or there is nothing to load
  }
  // The low-water mark does not go on by itself; the clocks do.
  const Millis until = far_begins_ - options_.horizon / 2 - LatestKeyByClocks(now);
  // Strictly nearer than half the horizon is what LoadAhead looks for.
  return std::max(until + Millis(1), Millis(0));
}

}  // namespace delayd::engine
