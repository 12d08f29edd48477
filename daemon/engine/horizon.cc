// Which jobs are in memory: those due within the horizon, as far as the budget goes (P10). The
// others stay on disk until their time comes near, and cost nothing but a look into the index when
// they are changed.
//
// The frontier is a place in the store's order of timers, (key_due, id). A job before it is in
// memory, a job at or behind it is not. The same comparison decides when a job is enqueued, moved
// or loaded, so no job is lost or doubled at the border. The exceptions, in memory behind the
// frontier, are leased jobs, jobs that were due when they came, and jobs left there by a page that
// was loaded after the clock was set back: a load passes over jobs that are in memory already.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/crash_point.h"
#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/slot_sample.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

JobState EngineCore::Settle(const storage::JobRecord& record,
                            WallTime key_due,
                            std::optional<Slot> slot) {
  const Queue& queue = queues_[record.queue];
  // A job that is due at once need not wait for a frontier that has fallen behind.
  const bool due_now = !queue.frontier && key_due <= LatestKeyOfNow() && HasRoom();
  if (!due_now && !IsNear(queue, key_due, record.id)) {
    if (slot) {
      Forget(*slot);
    }
    if (!queue.frontier) {
      far_begins_ = std::min(far_begins_, key_due);
    }
    return MomentOf(DueOf(record)).IsOver(now_) ? JobState::kReady : JobState::kScheduled;
  }
  if (slot) {
    Unplace(*slot);
    jobs_[*slot].set_key_due(key_due);
    jobs_[*slot].set_priority(record.priority);
  } else {
    JobEntry entry(record.id, record.queue, key_due, record.priority, storage::IsPlain(record));
    entry.set_phase(Phase::kScheduled);
    slot = jobs_.Add(entry);
  }
  Place(*slot, record);
  return jobs_[*slot].phase() == Phase::kReady ? JobState::kReady : JobState::kScheduled;
}

// No due job is keyed behind this; a job that was late when it came is keyed at the low-water mark.
WallTime EngineCore::LatestKeyOfNow() const {
  return std::max(wall_offsets_.LatestKey(now_), low_water_mark_.decided());
}

// Every job keyed before this was due in the last turn, and is due now. If the wall clock was set
// back in between, a job that has come since may be keyed before jobs that were due then.
WallTime EngineCore::FirstKeyNotDue() const {
  return std::min(wall_offsets_.FirstKeyNotDue(advanced_to_), wall_offsets_.FirstKeyNotDue(now_));
}

// The frontier moves up to the first row that is on disk only, without a look at the disk.
void EngineCore::SlideFrontier() {
  const WallTime free = std::min(LatestKeyOfNow() + options_.horizon, far_begins_);
  frontier_ = std::max(frontier_, Frontier(free, JobId{}));
}

bool EngineCore::LoadAhead() {
  if (left_on_disk_.Until(now_).value_or(Millis::max()) <= Millis(0)) {
    ReturnToLeft();
  }
  if (sweep_) {
    Sweep();
    LoadLagging();  // for a queue that has nothing in memory
    return fatal_.ok();
  }
  if (held_ > HeldMax() + options_.memory_jobs_max / 4 && CanMakeRoom()) {
    MakeRoom(HeldMax());
  }
  SlideFrontier();
  const bool more_of_lagging = !sweep_ && LoadLagging();
  if (!fatal_.ok()) {
    return false;
  }
  // Room that is still being made is not taken yet.
  const bool more = sweep_ || LoadNextPage();
  return more || more_of_lagging || sweep_;
}

bool EngineCore::LoadNextPage() {
  loading_ = loading_ || far_begins_ < LatestKeyOfNow() + options_.horizon / 2;
  if (!loading_) {
    return false;
  }
  pages_behind_ = IsBehind() ? pages_behind_ + 1 : 0;
  // Once a page: otherwise the lagging queues would take the room, and it would be made again, for
  // ever.
  if (IsBehind() && !HasRoom() && CanMakeRoom() && !std::exchange(made_room_, true)) {
    MakeRoom(HeldMax() - HeldMax() / 4);
  }
  if (sweep_) {
    return true;
  }
  made_room_ = false;
  if (IsBehind() && (!HasRoom() || pages_behind_ > limits::kLoadPagesBehindMax)) {
    LeaveBacklogs();
  }
  if (!HasRoom()) {
    return LaggingWant();  // freed room, or the time, brings us here again
  }
  const WallTime target = LatestKeyOfNow() + options_.horizon;
  if (const Status loaded = LoadPage(target, Overdue::kThroughTheWheel); !loaded.ok()) {
    Die(loaded);
    return false;
  }
  loading_ = frontier_ < Frontier(target, JobId{});
  // A clock that jumps from one turn to the next is no backlog.
  pages_behind_ = loading_ ? pages_behind_ : 0;
  DELAYD_CRASH_POINT("horizon/page");
  return loading_ && (HasRoom() || IsBehind());
}

// Moves the frontier towards `target` by one page, and takes the jobs that it passes into memory:
// from the store, and from the batches under way, which a scan does not see or sees in part.
Status EngineCore::LoadPage(WallTime target, Overdue overdue) {
  const size_t held_max = std::max(HeldMax(), held_ + 1);
  const Frontier from = frontier_;
  Frontier next(target, JobId{});
  size_t rows = 0;
  WallTime first_behind = kNothingFar;
  Status failed;
  const auto take = [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    failed = parts.status();
    const bool ends_here = parts.ok() && (parts->key_due >= target ||
                                          rows == limits::kLoadPageRows || held_ == held_max);
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
    } else if (place >= from) {
      LoadOwn(*parts, key, value, overdue);
    }
  });
  frontier_ = next;
  far_begins_ = first_behind;
  if (next < from) {
    // The clock was set back. Queues that lag behind this place lag no longer; their jobs on disk
    // may lie before the first row that was seen.
    far_begins_ = std::min(far_begins_, next.first);
    lagging_.CatchUpFrom(next);
  }
  return OkStatus();
}

// The key_due of the first row from `place` on, durable or not. Where it cannot be read, that of
// `place`: a load looks there again, so that the row comes late rather than never.
WallTime EngineCore::FirstRowFrom(const Frontier& place) const {
  WallTime first = kNothingFar;
  const auto see = [&](std::string_view key) {
    const auto parts = storage::ParseTimerKey(key);
    const Frontier found = parts.ok() ? Frontier(parts->key_due, parts->id) : place;
    if (found >= place) {
      first = std::min(first, found.first);
    }
    return false;
  };
  const Status scanned =
      store_.Scan(Table::kTimers,
                  storage::TimerKey(place.first, place.second),
                  {},
                  [&](std::string_view key, std::string_view) { return see(key); });
  pending_.ForEachPut(Table::kTimers, [&](std::string_view key, std::string_view) { see(key); });
  return scanned.ok() ? first : place.first;
}

// Drops the farthest jobs until `keep` are left, as long as they are not due yet: they are on disk,
// and are loaded again when there is room. In a large table the place of the cut is taken from a
// sample of the jobs.
bool EngineCore::DropFarthest(size_t keep) {
  const Frontier not_due(LatestKeyOfNow() + Millis(1), JobId{});
  DELAYD_CHECK(keep < held_);
  if (frontier_ <= not_due) {
    return false;
  }
  std::vector<Frontier> keys;
  ForEachSampled(
      0, jobs_.slot_count(), SampleStride(jobs_.slot_count(), held_), [this, &keys](Slot slot) {
        if (IsDroppable(slot)) {
          keys.emplace_back(jobs_[slot].key_due(), jobs_[slot].id());
        }
      });
  if (keys.empty()) {
    return false;  // so few among the leased ones that the sample has none
  }
  const Frontier cut = PlaceOfShare(keep, held_, &keys);
  const bool is_enough = cut >= not_due;
  frontier_ = std::min(frontier_, std::max(cut, not_due));
  far_begins_ = std::min(far_begins_, frontier_.first);
  lagging_.CatchUpFrom(frontier_);
  DropWhatIsFar();
  return is_enough;
}

// A frontier went back and left jobs behind it in memory. They are dropped in steps; a load that
// comes before that passes over those that are still there.
void EngineCore::DropWhatIsFar() {
  sweep_ = 0;
  Sweep();
}

void EngineCore::Sweep() {
  if (cut_) {
    GoOnCutting();
    return;
  }
  const Slot end = std::min(jobs_.slot_count() - *sweep_, options_.sweep_slots) + *sweep_;
  for (Slot slot = *sweep_; slot < end; ++slot) {
    if (IsDroppable(slot) && !DropIfFar(slot) && leaves_waiting_ && LeaveIfItWaits(jobs_[slot])) {
      Forget(slot);
    }
  }
  sweep_ = end == jobs_.slot_count() ? std::nullopt : std::optional(end);
  leaves_waiting_ = leaves_waiting_ && sweep_;
}

bool EngineCore::DropIfFar(Slot slot) {
  const JobEntry& entry = jobs_[slot];
  const Queue& queue = queues_[entry.queue()];
  if (IsNear(queue, entry.key_due(), entry.id())) {
    return false;
  }
  if (!queue.frontier) {
    far_begins_ = std::min(far_begins_, entry.key_due());
  }
  Forget(slot);
  return true;
}

std::optional<Millis> EngineCore::UntilLoad(const Now& now) const {
  // The low-water mark does not move on by itself; the clocks do.
  const WallTime latest = wall_offsets_.LatestKey(now);
  std::optional<Millis> wait;
  const auto consider = [&wait](Millis until) {
    wait = std::min(wait.value_or(Millis::max()), std::max(until, Millis(0)));
  };
  // That is when jobs behind the frontier of a lagging queue are due. A queue that has ready jobs
  // is looked at when these go, which takes a command.
  if (const WallTime hungry = lagging_.first_hungry(); hungry != kNothingFar) {
    consider(hungry - latest);
  }
  if (const std::optional<Millis> left = left_on_disk_.Until(now)) {
    consider(*left);
  }
  if (far_begins_ != kNothingFar) {
    // Without room for the next page, what counts is when its first job is due. Otherwise
    // LoadNextPage begins when that job is strictly nearer than half the horizon.
    consider(loading_ ? far_begins_ - latest
                      : far_begins_ - options_.horizon / 2 - latest + Millis(1));
  }
  return wait;
}

}  // namespace delayd::engine
