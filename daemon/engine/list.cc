// Lists: a page of jobs.
#include <algorithm>

#include "base/limits.h"
#include "daemon/engine/due_range.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/list_page.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::JobRecord;
using storage::Table;

namespace {

// A record that cannot be read does not keep the jobs behind it out of a list.
JobView DamagedView(JobId id, std::string queue, JobState state, const Status& why) {
  JobView view;
  view.id = id;
  view.queue = std::move(queue);
  view.state = state;
  view.last_error = why.message();
  return view;
}

// The same for a job whose payload cannot be read; any other error is returned.
Status ListDamaged(const Status& read, JobView* view) {
  if (read.code() != StatusCode::kDataLoss) {
    return read;
  }
  const WallTime due = view->due;
  *view = DamagedView(view->id, std::move(view->queue), view->state, read);
  view->due = due;
  return OkStatus();
}

}  // namespace

StatusOr<Body> EngineCore::Do(const List& command) {
  if (command.limit > limits::kListLimitMax) {
    return InvalidArgument("limit of " + std::to_string(command.limit) +
                               " is out of range; use 1 to " +
                               std::to_string(limits::kListLimitMax) + " and follow next_cursor",
                           "invalid_limit");
  }
  DELAYD_ASSIGN_OR_RETURN(const Queue* queue, FindStoredQueue(command.queue));
  if (command.state == JobState::kDead) {
    return ListDead(command, queue);
  }
  if (command.state == JobState::kFinished) {
    return ListFinished(command, queue);
  }
  return ListPending(command, queue);
}

StatusOr<Body> EngineCore::ListPending(const List& command, const Queue* queue) {
  ListPage page(command);
  DELAYD_ASSIGN_OR_RETURN(const ListCursor after, ParseListCursor(command.cursor));
  Status failed;
  const auto see = [&](const ListCursor& place) {
    StatusOr<std::optional<JobView>> view = ListedView(command, place.at, place.id);
    failed = view.status();
    return failed.ok() && page.Add(place, std::move(*view));
  };
  const DueRange range = KeysDue(DueRangeOf(command));
  if (HasNone(command.state, queue)) {
    pending_.TouchAll();
  } else if (command.state == JobState::kLeased && leases_.places() <= limits::kListLeasesMax) {
    pending_.TouchAll();
    VisitLeased(DueRangeOf(command), queue, after, see);
  } else if (command.state == JobState::kReady) {
    DELAYD_RETURN_IF_ERROR(VisitReady(range, queue, after, see));
  } else {
    DELAYD_RETURN_IF_ERROR(ScanPending(range, queue, after, see));
  }
  DELAYD_RETURN_IF_ERROR(failed);
  return Body(page.Take());
}

// Whether it is certain that no pending job is in that state, once all changes are durable.
bool EngineCore::HasNone(std::optional<JobState> state, const Queue* queue) const {
  if (state == JobState::kLeased) {
    return (queue != nullptr ? queue->leased : leases_.size()) == 0;
  }
  return state == JobState::kReady && FirstOnDisk() > LatestKeyOfNow() &&
         (queue != nullptr ? queue->ready_count() : fired_count_ - leases_.size()) == 0;
}

StatusOr<std::optional<JobView>> EngineCore::ListedView(const List& command,
                                                        WallTime key_due,
                                                        JobId id) {
  const std::optional<JobView> left_out;
  StatusOr<Located> located = LocateId(id);
  if (located.status().code() == StatusCode::kNotFound) {
    return left_out;  // it ends with a commit that is under way
  }
  const auto damaged = [&](std::string queue, JobState state, const Status& why) {
    JobView view = DamagedView(id, std::move(queue), state, why);
    view.due = key_due;
    return std::optional(std::move(view));
  };
  if (located.status().code() == StatusCode::kDataLoss) {
    // Only the row that led here may tell the job's queue; the record itself may be sound.
    DELAYD_ASSIGN_OR_RETURN(const JobState state, StateOnDisk(key_due, id));
    return command.state.value_or(state) == state
               ? damaged(command.queue.value_or(""), state, located.status())
               : left_out;
  }
  DELAYD_RETURN_IF_ERROR(located.status());
  if (located->index.place != IndexRecord::Place::kTimers) {
    return left_out;  // it dies with a commit that is under way
  }
  if (command.state && located->state != *command.state) {
    return left_out;
  }
  StatusOr<JobRecord> record = ReadRecord(*located);
  if (record.status().code() == StatusCode::kDataLoss) {
    return damaged(queues_[located->index.queue].name, located->state, record.status());
  }
  DELAYD_RETURN_IF_ERROR(record.status());
  // A job that a commit under way moves has only its old row so far: it is listed there, as it will
  // be.
  if (!record->key.starts_with(command.key_prefix) ||
      !DueRangeOf(command).Holds(DueByNow(*record))) {
    return left_out;
  }
  JobView view = ViewOf(*record, located->state);
  if (command.with_payload) {
    DELAYD_RETURN_IF_ERROR(ListDamaged(AddWhole(&*record, &view), &view));
  }
  return std::optional(std::move(view));
}

StatusOr<Body> EngineCore::ListDead(const List& command, const Queue* queue) {
  if (queue == nullptr) {
    return InvalidArgument("a list of dead jobs needs a queue; add queue=NAME", "queue_required");
  }
  ListPage page(command);
  DELAYD_ASSIGN_OR_RETURN(const ListCursor after, ParseListCursor(command.cursor));
  Status failed;
  const auto see = [&](const ListCursor& place, std::string_view key, std::string_view value) {
    StatusOr<JobRecord> record = DeadRecord(place.id, key, value);
    if (record.status().code() == StatusCode::kNotFound) {
      return true;  // dead no longer, with a commit that is under way
    }
    if (record.status().code() == StatusCode::kDataLoss) {
      JobView damaged = DamagedView(place.id, queue->name, JobState::kDead, record.status());
      damaged.due = place.at;
      return page.Add(place, std::move(damaged));
    }
    failed = record.status();
    if (!failed.ok()) {
      return false;
    }
    if (!record->key.starts_with(command.key_prefix) || !DueRangeOf(command).Holds(record->due)) {
      return page.Add(place, std::nullopt);
    }
    JobView view = ViewOf(*record, JobState::kDead);
    if (command.with_payload) {
      failed = ListDamaged(AddWhole(&*record, &view), &view);
    }
    return failed.ok() && page.Add(place, std::move(view));
  };
  DELAYD_RETURN_IF_ERROR(ScanDead(*queue, after, see));
  DELAYD_RETURN_IF_ERROR(failed);
  return Body(page.Take());
}

// The record of a dead job. One that is revived and dies again in commits under way has only its
// old row so far: it is listed there, as it will be.
StatusOr<JobRecord> EngineCore::DeadRecord(JobId id, std::string_view key, std::string_view value) {
  if (!pending_.IsChanging(Table::kDead, key)) {
    return storage::DecodeJobRecord(Table::kDead, key, value);
  }
  DELAYD_ASSIGN_OR_RETURN(const Located located, LocateId(id));
  if (located.index.place != IndexRecord::Place::kDead) {
    return NotFound("dead no longer");
  }
  return ReadRecord(located);
}

StatusOr<Body> EngineCore::ListFinished(const List& command, const Queue* queue) {
  ListPage page(command);
  DELAYD_ASSIGN_OR_RETURN(const ListCursor after, ParseListCursor(command.cursor));
  const auto [mark, first_id] = finished_rows_.first();
  const ListCursor from = std::max(after.Next(), ListCursor{.at = mark, .id = first_id});
  Status failed;
  const Status scanned = pending_.Scan(
      Table::kDone,
      storage::DoneKey(from.at, from.id),
      {},
      [&](std::string_view key, std::string_view value) {
        const auto parts = storage::ParseDoneKey(key);
        failed = parts.status();
        if (!failed.ok() || pending_.IsChanging(Table::kDone, key)) {
          return failed.ok();
        }
        const auto done = storage::DecodeDoneRecord(key, value);
        const Status known = done.ok() ? queues_.CheckKnown(done->queue, parts->id) : done.status();
        if (!known.ok()) {  // its queue cannot be told: it may be this one
          JobView damaged = DamagedView(parts->id, "", JobState::kFinished, known);
          damaged.finished = parts->key_due;
          return page.Add({parts->key_due, parts->id}, std::move(damaged));
        }
        const bool wanted = !IsForgotten(*done) && (queue == nullptr || done->queue == queue->id) &&
                            done->key.starts_with(command.key_prefix) &&
                            DueRangeOf(command).Holds(done->due);
        return page.Add(
            {parts->key_due, parts->id},
            wanted ? std::optional(DoneView(parts->id, parts->key_due, *done, command.with_payload))
                   : std::nullopt);
      });
  DELAYD_RETURN_IF_ERROR(scanned);
  DELAYD_RETURN_IF_ERROR(failed);
  return Body(page.Take());
}

}  // namespace delayd::engine
