// The jobs that lists and bulk changes go through, in the order of their rows.
#include <algorithm>

#include "base/limits.h"
#include "daemon/engine/due_range.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/list_page.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::JobRecord;
using storage::Table;

// A job is keyed by the wall clock as it stood when its delay was promised.
DueRange EngineCore::KeysDue(DueRange range) const {
  const auto [back, forward] = wall_offsets_.Steps(now_);
  if (range.after) {
    *range.after = std::max(*range.after - forward, WallTime());
  }
  if (range.before) {
    *range.before += back;
  }
  return range;
}

// Visits the durable rows of pending jobs behind `after`, among them all that are due in `range`,
// until `visit` returns false.
Status EngineCore::ScanPending(const DueRange& range,
                               const Queue* queue,
                               const ListCursor& after,
                               const VisitPlace& visit) const {
  const WallTime first =
      std::max({low_water_mark_.durable(), range.after.value_or(WallTime()), after.at});
  const JobId first_id = first == after.at ? after.Next().id : JobId{};
  const std::optional<WallTime> end = range.EndOfKeys(low_water_mark_.decided());
  Status failed;
  const auto see = [&](const auto& parts) {
    failed = parts.status();
    return failed.ok() && visit({parts->key_due, parts->id});
  };
  if (queue != nullptr) {
    const std::string to =
        end ? storage::ByQueueKey(queue->id, *end, JobId{})
            : storage::ByQueueKey(QueueId{ToInt(queue->id) + 1}, WallTime(), JobId{});
    DELAYD_RETURN_IF_ERROR(pending_.Scan(Table::kByQueue,
                                         storage::ByQueueKey(queue->id, first, first_id),
                                         to,
                                         [&](std::string_view key, std::string_view) {
                                           return see(storage::ParseByQueueKey(key));
                                         }));
    return failed;
  }
  DELAYD_RETURN_IF_ERROR(pending_.Scan(
      Table::kTimers,
      storage::TimerKey(first, first_id),
      end ? storage::TimerKey(*end, JobId{}) : std::string(),
      [&](std::string_view key, std::string_view) { return see(storage::ParseTimerKey(key)); }));
  return failed;
}

// Scans up to the last key that can be due. A job that becomes ready with a commit under way may
// have an old row behind that.
Status EngineCore::VisitReady(DueRange range,
                              const Queue* queue,
                              const ListCursor& after,
                              const VisitPlace& visit) {
  // After the clock was set back, a job that waits again is still ready until the turn gets to it.
  const WallTime not_due = std::max(LatestKeyOfNow(), clock_note_.highest()) + Millis(1);
  range.before = std::min(range.before.value_or(not_due), not_due);
  const ListCursor first = std::max(
      ListCursor{.at = *range.EndOfKeys(low_water_mark_.decided()), .id = JobId{}}, after.Next());
  bool goes_on = true;
  DELAYD_RETURN_IF_ERROR(ScanPending(range, queue, after, [&](const ListCursor& place) {
    goes_on = visit(place);
    return goes_on;
  }));
  std::vector<ListCursor> leaving;
  Status failed;
  pending_.ForEachDelete(Table::kTimers, [&](std::string_view key) {
    const auto parts = storage::ParseTimerKey(key);
    DELAYD_CHECK(parts.ok());
    const ListCursor place{.at = parts->key_due, .id = parts->id};
    if (place < first) {
      return;
    }
    const StatusOr<Located> job = LocateId(parts->id);
    const bool is_meant = job.ok() && job->state == JobState::kReady &&
                          (queue == nullptr || job->index.queue == queue->id);
    // A row that was never in the store does not count: its job has another.
    const Status was_there = is_meant ? store_.Get(Table::kTimers, key, &row_read_) : job.status();
    if (IsReadFailure(was_there)) {
      failed = was_there;
    } else if (is_meant && was_there.ok()) {
      leaving.push_back(place);
    }
  });
  DELAYD_RETURN_IF_ERROR(failed);
  std::ranges::sort(leaving);
  for (size_t i = 0; i < leaving.size() && goes_on; ++i) {
    goes_on = visit(leaving[i]);
  }
  return OkStatus();
}

// All leased jobs are in memory: these few are not looked for among millions of rows.
void EngineCore::VisitLeased(const DueRange& range,
                             const Queue* queue,
                             const ListCursor& after,
                             const VisitPlace& visit) const {
  std::vector<ListCursor> places;
  leases_.ForEach([&](const LeaseInfo& lease) {
    const JobRecord& record = *lease.record;
    if ((queue != nullptr && record.queue != queue->id) || !range.Holds(DueByNow(record))) {
      return;
    }
    const ListCursor place{.at = jobs_[*jobs_.Find(record.id)].key_due(), .id = record.id};
    if (place > after) {
      places.push_back(place);
    }
  });
  // A page ends after this many.
  const size_t count = std::min(places.size(), limits::kListScanRowsMax);
  std::ranges::partial_sort(places, places.begin() + static_cast<ptrdiff_t>(count));
  for (size_t i = 0; i < count && visit(places[i]); ++i) {
  }
}

Status EngineCore::ScanDead(const Queue& queue, const ListCursor& after, const VisitDead& visit) {
  const ListCursor from = after.Next().NotBefore(queue.first_dead);
  const bool is_from_first = after <= ListCursor{.at = queue.first_dead, .id = JobId{}};
  std::optional<WallTime> first;
  Status failed;
  DELAYD_RETURN_IF_ERROR(
      pending_.Scan(Table::kDead,
                    storage::DeadKey(queue.id, from.at, from.id),
                    storage::DeadKey(QueueId{ToInt(queue.id) + 1}, WallTime(), JobId{}),
                    [&](std::string_view key, std::string_view value) {
                      const auto parts = storage::ParseDeadKey(key);
                      failed = parts.status();
                      if (!failed.ok()) {
                        return false;
                      }
                      first = first.value_or(parts->died);
                      return visit({parts->died, parts->id}, key, value);
                    }));
  DELAYD_RETURN_IF_ERROR(failed);
  if (is_from_first) {
    NoteFirstDead(queue, first);
  }
  return OkStatus();
}

// A scan of the dead from first_dead on has met `first` first, or no job at all. The tombstones
// before it must be passed over only once.
void EngineCore::NoteFirstDead(const Queue& queue, std::optional<WallTime> first) {
  WallTime oldest = first.value_or(WallTime::max());
  if (oldest == queue.first_dead) {
    return;
  }
  pending_.ForEachPut(Table::kDead, [&](std::string_view key, std::string_view) {
    const auto parts = storage::ParseDeadKey(key);
    DELAYD_CHECK(parts.ok());
    if (parts->queue == queue.id) {
      oldest = std::min(oldest, parts->died);
    }
  });
  queues_[queue.id].first_dead = oldest;
}

// As ScanDead, without jobs that have died since `began`. Jobs that died later than now did so
// before the clock was set back.
Status EngineCore::ScanDeadBefore(std::optional<WallTime> began,
                                  const Queue& queue,
                                  const ListCursor& after,
                                  const VisitPlace& visit) {
  bool since = false;
  const auto see = [&](const ListCursor& place, std::string_view, std::string_view) {
    since = began && place.at > *began && place.at <= now_.wall;
    return !since && visit(place);
  };
  DELAYD_RETURN_IF_ERROR(ScanDead(queue, after, see));
  if (!since) {
    return OkStatus();
  }
  return ScanDead(queue, {.at = now_.wall + Millis(1), .id = JobId{}}, see);
}

}  // namespace delayd::engine
