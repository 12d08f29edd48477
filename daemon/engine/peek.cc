// The jobs of one queue that come next, in each state: for peek and for kicks by number.
#include <algorithm>
#include <set>
#include <utility>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::Table;

namespace {

// (key_due or time of death, id), in order; as rows on disk and rows of batches on their way say.
using Places = std::set<std::pair<WallTime, JobId>>;

void KeepFirst(Places* places, size_t count) {
  while (places->size() > count) {
    places->erase(std::prev(places->end()));
  }
}

}  // namespace

// Null when there is none. An answer that says so rests on the batch that forgets it.
const Queue* EngineCore::FindIfStored(const std::string& name) const {
  const Queue* queue = queues_.Find(name);
  if (queue != nullptr && queue->stored) {
    return queue;
  }
  static_cast<void>(pending_.IsChanging(Table::kQueues, name));
  return nullptr;
}

StatusOr<const Queue*> EngineCore::FindStoredQueue(const std::string& name) const {
  DELAYD_RETURN_IF_ERROR(ValidateQueueName(name));
  const Queue* queue = FindIfStored(name);
  if (queue == nullptr) {
    return NotFound("queue " + name +
                    " is not known: no job was ever put into it, or it was empty and forgotten");
  }
  return queue;
}

// Nothing of the queue that still waits is keyed before this: what a timer stands for is keyed at
// its due time or later, and what is on disk only at far_begins_ or later. Of a queue that lags
// behind, what lies on disk and is due is passed over.
WallTime EngineCore::FirstScheduledKey(const Queue& queue) const {
  WallTime first = far_begins_;
  if (left_on_disk_.from()) {
    first = std::min(first, left_on_disk_.from()->first);
  }
  if (queue.frontier) {
    first = std::min(first,
                     std::max(queue.frontier->first, wall_offsets_.FirstKeyNotDue(advanced_to_)));
  }
  if (const wheel::Tick next = wall_wheel_.NextExpiration(); next != wheel::kNever) {
    first = std::min(first, WallTimeOf(next) - kClockRounding);
  }
  const wheel::Tick next_boot = boot_wheel_.NextExpiration();
  if (const std::optional<Millis> least = boot_offsets_.Least(next_boot)) {
    first = std::min(first, WallTime(BootTimeOf(next_boot).time_since_epoch()) + *least);
  }
  return std::max(first, low_water_mark_.durable());
}

StatusOr<std::vector<EngineCore::Located>> EngineCore::SoonestScheduled(const Queue& queue,
                                                                        size_t count) {
  std::vector<Located> found;
  if (count == 0) {
    return found;
  }
  Places places;
  Status failed;
  const auto consider = [&](WallTime key_due, JobId id) {
    const StatusOr<Located> located = LocateId(id);
    const bool here = located.ok() && located->state == JobState::kScheduled &&
                      located->index.at == key_due && located->index.queue == queue.id;
    if (here) {
      places.emplace(key_due, id);
      KeepFirst(&places, count);
    } else if (!located.ok() && located.status().code() != StatusCode::kNotFound) {
      failed = located.status();
    }
    return failed.ok();
  };
  pending_.ForEachPut(Table::kTimers, [&](std::string_view key, std::string_view) {
    const auto parts = storage::ParseTimerKey(key);
    DELAYD_CHECK(parts.ok());
    consider(parts->key_due, parts->id);
  });
  DELAYD_CHECK(failed.ok());  // nothing was read: their other rows are in the batches as well
  DELAYD_RETURN_IF_ERROR(
      pending_.Scan(Table::kByQueue,
                    storage::ByQueueKey(queue.id, FirstScheduledKey(queue), JobId{}),
                    storage::ByQueueKey(QueueId{ToInt(queue.id) + 1}, WallTime(), JobId{}),
                    [&](std::string_view key, std::string_view) {
                      const auto parts = storage::ParseByQueueKey(key);
                      failed = parts.status();
                      if (!failed.ok()) {
                        return false;
                      }
                      const std::pair place(parts->key_due, parts->id);
                      const bool enough = places.size() == count && place > *places.rbegin();
                      return !enough && consider(parts->key_due, parts->id);
                    }));
  DELAYD_RETURN_IF_ERROR(failed);
  for (const auto& [key_due, id] : places) {
    DELAYD_ASSIGN_OR_RETURN(Located located, LocateId(id));
    found.push_back(std::move(located));
  }
  return found;
}

StatusOr<std::vector<EngineCore::Located>> EngineCore::OldestDead(const Queue& queue,
                                                                  size_t count,
                                                                  const Located* after) {
  std::vector<Located> found;
  if (count == 0 || queue.counts.dead == 0) {
    return found;
  }
  // No job has this id, so that it is before all that are as old.
  const std::pair begin = after != nullptr ? std::pair(after->index.at, JobId{ToInt(after->id) + 1})
                                           : std::pair(queue.first_dead, JobId{});
  Places places;
  pending_.ForEachPut(Table::kDead, [&](std::string_view key, std::string_view) {
    const auto parts = storage::ParseDeadKey(key);
    DELAYD_CHECK(parts.ok());
    if (parts->queue == queue.id && std::pair(parts->died, parts->id) >= begin) {
      places.emplace(parts->died, parts->id);
      KeepFirst(&places, count);
    }
  });
  Status failed;
  std::optional<WallTime> first;
  if (!places.empty()) {
    first = places.begin()->first;
  }
  DELAYD_RETURN_IF_ERROR(
      pending_.Scan(Table::kDead,
                    storage::DeadKey(queue.id, begin.first, begin.second),
                    storage::DeadKey(QueueId{ToInt(queue.id) + 1}, WallTime(), JobId{}),
                    [&](std::string_view key, std::string_view) {
                      const auto parts = storage::ParseDeadKey(key);
                      failed = parts.status();
                      if (!failed.ok()) {
                        return false;
                      }
                      const std::pair place(parts->died, parts->id);
                      first = std::min(first.value_or(place.first), place.first);
                      if (places.size() == count && place > *places.rbegin()) {
                        return false;
                      }
                      if (!pending_.IsChanging(Table::kDead, key)) {
                        places.insert(place);
                        KeepFirst(&places, count);
                      }
                      return true;
                    }));
  DELAYD_RETURN_IF_ERROR(failed);
  if (after == nullptr) {
    // What was deleted before it must be passed over only once.
    queues_[queue.id].first_dead = first.value_or(queue.first_dead);
  }
  for (const auto& [died, id] : places) {
    found.push_back({.state = JobState::kDead,
                     .id = id,
                     .index = {.place = IndexRecord::Place::kDead, .queue = queue.id, .at = died}});
  }
  return found;
}

// A scan of the dead from first_dead on has met this one first, or none. What was deleted before it
// must be passed over only once.
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

StatusOr<std::vector<EngineCore::Located>> EngineCore::Next(const Queue& queue, Peek::Which which) {
  switch (which) {
    case Peek::Which::kReady:
      break;
    case Peek::Which::kDelayed:
      return SoonestScheduled(queue, 1);
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
  pending_.TouchAll();  // that it is the first rests on every change so far
  if (jobs.empty()) {
    return NotFound("queue " + command.queue + " has no such job");
  }
  return ShowWithPayload(jobs.front());
}

}  // namespace delayd::engine
