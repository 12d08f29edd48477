// The jobs of one queue that come next, in each state: for peek and for kicks by number.
#include <algorithm>
#include <map>
#include <utility>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::Table;

namespace {

template <typename Places>
void KeepFirst(Places* places, size_t count) {
  while (places->size() > count) {
    places->erase(std::prev(places->end()));
  }
}

template <typename Key, typename Value>
std::vector<Value> ValuesOf(std::map<Key, Value> map) {
  std::vector<Value> values;
  values.reserve(map.size());
  for (auto& [key, value] : map) {
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

// No job of the queue that still waits is keyed before this. For a queue that lags behind, due jobs
// on disk are passed over.
WallTime EngineCore::FirstScheduledKey(const Queue& queue) const {
  WallTime first = std::min(FirstKeyInWheels(), far_begins_);
  if (left_on_disk_.from()) {
    first = std::min(first, left_on_disk_.from()->first);
  }
  if (queue.frontier) {
    first = std::min(first, std::max(queue.frontier->first, FirstKeyNotDue()));
  }
  return std::max(first, low_water_mark_.durable());
}

// Found from rows on disk and rows of batches under way. A few jobs whose places in the store
// cannot be read are passed over. If there are many, or the table is damaged, that is the answer:
// the jobs behind them would be sought one by one.
StatusOr<std::vector<Located>> EngineCore::SoonestScheduled(const Queue& queue,
                                                            size_t count,
                                                            const Located* after) {
  std::map<Frontier, Located> found;
  Status failed;
  Status unreadable;
  uint64_t passed_over = 0;
  const auto consider = [&](const Frontier& place) {
    const bool is_enough = found.size() == count && place > found.rbegin()->first;
    if (is_enough || (after != nullptr && place <= Frontier(after->index.at, after->id))) {
      return !is_enough;
    }
    StatusOr<Located> located = LocateId(place.second);
    if (located.status().code() == StatusCode::kDataLoss) {
      unreadable = located.status();
      if (unreadable.reason() == "damaged_store" || ++passed_over > limits::kKickCountMax) {
        failed = unreadable;
      }
    } else if (IsReadFailure(located.status())) {
      failed = located.status();
    } else if (located.ok() && located->state == JobState::kScheduled &&
               located->index.at == place.first && located->index.queue == queue.id) {
      found.emplace(place, *std::move(located));
      KeepFirst(&found, count);
    }
    return failed.ok();
  };
  pending_.ForEachPut(Table::kTimers, [&](std::string_view key, std::string_view) {
    const auto parts = storage::ParseTimerKey(key);
    DELAYD_CHECK(parts.ok());
    consider({parts->key_due, parts->id});
  });
  DELAYD_CHECK(failed.ok());  // nothing was read: their index rows are in the batches, too
  const WallTime first =
      std::max(FirstScheduledKey(queue), after != nullptr ? after->index.at : WallTime());
  DELAYD_RETURN_IF_ERROR(
      pending_.Scan(Table::kByQueue,
                    storage::ByQueueKey(queue.id, first, JobId{}),
                    storage::ByQueueKey(QueueId{ToInt(queue.id) + 1}, WallTime(), JobId{}),
                    [&](std::string_view key, std::string_view) {
                      const auto parts = storage::ParseByQueueKey(key);
                      failed = parts.status();
                      return failed.ok() && consider({parts->key_due, parts->id});
                    }));
  DELAYD_RETURN_IF_ERROR(failed);
  if (found.empty() && after == nullptr) {
    DELAYD_RETURN_IF_ERROR(unreadable);
  } else if (!unreadable.ok()) {
    incidents_.push_back(std::move(unreadable));
  }
  return ValuesOf(std::move(found));
}

StatusOr<std::vector<Located>> EngineCore::OldestDead(const Queue& queue,
                                                      size_t count,
                                                      const Located* after) {
  std::map<Frontier, Located> found;
  if (queue.counts.dead == 0) {
    return std::vector<Located>();
  }
  const ListCursor behind =
      after != nullptr ? ListCursor{.at = after->index.at, .id = after->id} : ListCursor();
  const auto add = [&](const ListCursor& place) {
    const storage::IndexRecord index{
        .place = IndexRecord::Place::kDead, .queue = queue.id, .at = place.at};
    found.emplace(Frontier(place.at, place.id),
                  Located{.state = JobState::kDead, .id = place.id, .index = index});
    KeepFirst(&found, count);
  };
  pending_.ForEachPut(Table::kDead, [&](std::string_view key, std::string_view) {
    const auto parts = storage::ParseDeadKey(key);
    DELAYD_CHECK(parts.ok());
    const ListCursor place{.at = parts->died, .id = parts->id};
    if (parts->queue == queue.id && place > behind) {
      add(place);
    }
  });
  const auto take = [&](const ListCursor& place, std::string_view key, std::string_view) {
    if (found.size() == count && Frontier(place.at, place.id) > found.rbegin()->first) {
      return false;
    }
    if (!pending_.IsChanging(Table::kDead, key)) {
      add(place);
    }
    return true;
  };
  DELAYD_RETURN_IF_ERROR(ScanDead(queue, behind, take));
  return ValuesOf(std::move(found));
}

StatusOr<std::vector<Located>> EngineCore::Next(const Queue& queue, Peek::Which which) {
  switch (which) {
    case Peek::Which::kReady:
      break;
    case Peek::Which::kDelayed:
      return SoonestScheduled(queue, 1, nullptr);
    case Peek::Which::kBuried:
      return OldestDead(queue, 1, nullptr);
  }
  std::vector<Located> first;
  if (!queue.ready.empty()) {
    first.push_back(LocateSlot(queue.ready.Top().slot));
  }
  return first;
}

StatusOr<Body> EngineCore::Do(const Peek& command) {
  DELAYD_ASSIGN_OR_RETURN(const Queue* queue, FindStoredQueue(command.queue));
  DELAYD_ASSIGN_OR_RETURN(const std::vector<Located> jobs, Next(*queue, command.which));
  pending_.TouchAll();  // that it is the first depends on every change so far
  if (jobs.empty()) {
    return NotFound("queue " + command.queue + " has no such job");
  }
  return ShowWithPayload(jobs.front());
}

}  // namespace delayd::engine
