// What clients see: one job, pages of jobs, queues, counters.
#include <algorithm>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::JobRecord;
using storage::Table;

JobView EngineCore::ViewOf(const JobRecord& record, JobState state) const {
  JobView view = ViewOfRecord(record, state);
  if (state == JobState::kLeased) {
    const std::optional<Slot> slot = jobs_.Find(record.id);
    DELAYD_CHECK(slot.has_value());
    AddLease(LeaseOf(*slot), &view);
  }
  return view;
}

void EngineCore::AddLease(const LeaseInfo& lease, JobView* view) const {
  view->client = lease.client;
  view->time_left = lease.expires - now_.boot;
  view->lease_expires = now_.wall + *view->time_left;
  view->lease_ends = lease.expires;
}

// Of a leased job without what its lease tells.
JobView EngineCore::ViewOfRecord(const JobRecord& record, JobState state) const {
  JobView view;
  view.id = record.id;
  view.queue = queues_[record.queue].name;
  view.key = record.key;
  view.state = state;
  view.due_kind = record.due_kind;
  // What has ended keeps the time that it was told.
  if (state != JobState::kDead && state != JobState::kFinished) {
    view.due_step = StepOfWall(DueOf(record), boot_id_, now_);
  }
  view.due = record.due + view.due_step;
  view.created = record.created;
  view.priority = record.priority;
  view.lease = record.lease;
  view.attempt = record.attempts;
  view.max_attempts = record.max_attempts;
  if (record.expires_after.count() > 0) {
    view.expires_after = record.expires_after;
  }
  view.last_error = record.last_error;
  view.payload_bytes = record.payload_bytes;
  view.delay = storage::DelayOf(record);
  view.fingerprint = record.fingerprint;
  view.timeouts = record.timeouts;
  view.releases = record.releases;
  view.buries = record.buries;
  view.kicks = record.kicks;
  view.reserves = record.timeouts + record.releases + record.buries + record.returns;
  if (state == JobState::kScheduled) {
    const bool on_boot_clock = record.due_kind == DueKind::kRelative && record.boot_id == boot_id_;
    const Millis left = on_boot_clock ? record.boot_due - now_.boot : record.due - now_.wall;
    view.time_left = std::max(left, Millis(0));
  }
  if (state == JobState::kLeased) {
    ++view.reserves;
    ++view.attempt;
  }
  return view;
}

JobView EngineCore::FinishedView(const JobRecord& record, bool cancelled) const {
  JobView view = ViewOf(record, JobState::kFinished);
  view.finished = now_.wall;
  view.outcome = cancelled ? "cancelled" : "acked";
  view.reserves += cancelled ? 0 : 1;  // the hand-out that was acked
  return view;
}

Status EngineCore::ReadPayload(JobRecord* record) const {
  if (!record->payload_is_big) {
    return OkStatus();
  }
  const storage::FixedKey key = storage::IndexKey(record->id);
  std::string value;
  const Status got = pending_.Get(Table::kBig, key, &value);
  if (got.code() == StatusCode::kNotFound) {
    return DataLoss("job " + std::to_string(ToInt(record->id)) +
                        ": its payload is missing; run 'delayctl verify'",
                    "damaged");
  }
  DELAYD_RETURN_IF_ERROR(got);
  DELAYD_ASSIGN_OR_RETURN(const std::string_view payload, storage::DecodeBigPayload(key, value));
  record->payload.assign(payload);
  return OkStatus();
}

// What is left out where jobs are many, or are about to be worked on.
Status EngineCore::AddWhole(JobRecord* record, JobView* view) const {
  DELAYD_RETURN_IF_ERROR(ReadPayload(record));
  view->payload = std::move(record->payload);
  view->history = std::move(record->events);
  return OkStatus();
}

StatusOr<JobView> EngineCore::ShowLocated(const Located& located, bool with_payload) {
  if (located.state != JobState::kFinished) {
    DELAYD_ASSIGN_OR_RETURN(JobRecord record, ReadRecord(located));
    JobView view = ViewOf(record, located.state);
    if (with_payload) {
      DELAYD_RETURN_IF_ERROR(AddWhole(&record, &view));
    }
    return view;
  }
  DELAYD_ASSIGN_OR_RETURN(const storage::DoneRecord done,
                          ReadDone(located.id, located.finished->at));
  return DoneView(located.id, located.finished->at, done, with_payload);
}

bool EngineCore::IsForgotten(const storage::DoneRecord& done) const {
  return done.kept_until && *done.kept_until <= now_.wall;
}

JobView EngineCore::DoneView(JobId id,
                             WallTime finished,
                             const storage::DoneRecord& done,
                             bool with_payload) const {
  JobView view;
  if (done.story) {
    view = ViewOf(*done.story, JobState::kFinished);
    view.reserves += done.cancelled ? 0 : 1;
    if (with_payload) {
      view.history = done.story->events;
    }
    if (with_payload && !done.story->payload_is_big) {
      view.payload = done.story->payload;
    }
  }
  view.id = id;
  view.queue = queues_[done.queue].name;
  view.key = done.key;
  view.state = JobState::kFinished;
  view.due = done.due;
  view.created = done.created;
  view.attempt = done.attempts;
  view.finished = finished;
  view.outcome = done.cancelled ? "cancelled" : "acked";
  return view;
}

StatusOr<Body> EngineCore::Do(const Show& command) {
  DELAYD_ASSIGN_OR_RETURN(const Located located, Locate(command.job));
  return ShowWithPayload(located);
}

StatusOr<Body> EngineCore::ShowWithPayload(const Located& located) {
  DELAYD_ASSIGN_OR_RETURN(JobView view, ShowLocated(located, /*with_payload=*/true));
  return BodyOf(std::move(view));
}

StatusOr<Body> EngineCore::ShowAfterChange(JobId id) {
  DELAYD_ASSIGN_OR_RETURN(const Located located, LocateId(id));
  DELAYD_ASSIGN_OR_RETURN(JobView view, ShowLocated(located, /*with_payload=*/false));
  return BodyOf(std::move(view));
}

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

namespace {

// A record that cannot be read does not keep those behind it out of a list.
JobView DamagedView(JobId id, std::string queue, JobState state, const Status& why) {
  JobView view;
  view.id = id;
  view.queue = std::move(queue);
  view.state = state;
  view.last_error = why.message();
  return view;
}

// The same for one whose payload cannot be read; any other error stays one.
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
    // Of which queue it is the row that led here may tell; the record may be as it was.
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
  // A job that moves with a commit under way has only its old row yet: it is listed there, as it
  // will be.
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

// Of the pending jobs, as they will be when all is durable.
bool EngineCore::HasNone(std::optional<JobState> state, const Queue* queue) const {
  if (state == JobState::kLeased) {
    return (queue != nullptr ? queue->leased : leases_.size()) == 0;
  }
  return state == JobState::kReady && FirstOnDisk() > LatestKeyOfNow() &&
         (queue != nullptr ? queue->ready_count() : fired_count_ - leases_.size()) == 0;
}

// Up to the last key whose moment has come. A job that becomes ready with a commit under way may
// have an old row behind that.
Status EngineCore::VisitReady(DueRange range,
                              const Queue* queue,
                              const ListCursor& after,
                              const VisitPlace& visit) {
  // Where the clock was set back, what waits again is ready until the turn comes to it.
  const WallTime not_due = std::max(LatestKeyOfNow(), highest_wall_) + Millis(1);
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
    // A row that was never there is none: its job has another.
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

// All of them are in memory: the few that workers hold are not looked for among millions of rows.
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
  // A page ends behind so many.
  const size_t count = std::min(places.size(), limits::kListScanRowsMax);
  std::ranges::partial_sort(places, places.begin() + static_cast<ptrdiff_t>(count));
  for (size_t i = 0; i < count && visit(places[i]); ++i) {
  }
}

// The record of a dead job. One that is revived and dies again with commits under way has only its
// old row yet: it is listed there, as it will be.
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

StatusOr<Body> EngineCore::ListFinished(const List& command, const Queue* queue) {
  ListPage page(command);
  DELAYD_ASSIGN_OR_RETURN(const ListCursor after, ParseListCursor(command.cursor));
  const ListCursor from = after.Next().NotBefore(finished_rows_.low_water_mark());
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
        if (!known.ok()) {  // of which queue it was cannot be told: it may be this one
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

QueueView EngineCore::ViewOfQueue(const Queue& queue) const {
  QueueView view{.name = queue.name};
  view.scheduled = queue.scheduled_count();
  view.ready = queue.ready_count();
  view.leased = queue.leased;
  view.dead = queue.counts.dead;
  view.urgent = queue.urgent;
  view.enqueued = queue.enqueued;
  view.handed_out = queue.handed_out;
  view.acked = queue.acked;
  view.cancelled = queue.cancelled;
  view.pauses = queue.pauses;
  view.concurrency = queue.settings.concurrency;
  view.max_jobs = queue.settings.max_jobs;
  view.rate = queue.settings.rate;
  view.paused = queue.pause.has_value();
  if (queue.pause && queue.pause->durable.timed) {
    view.pause_length = queue.pause->durable.timed->length;
    view.pause_left = std::max(queue.pause->end - now_.boot, Millis(0));
  }
  return view;
}

StatusOr<Body> EngineCore::Do(const ListQueues& command) {
  QueueList list;
  pending_.TouchAll();
  if (command.queue) {
    DELAYD_ASSIGN_OR_RETURN(const Queue* queue, FindStoredQueue(*command.queue));
    list.queues.push_back(ViewOfQueue(*queue));
    return Body(std::move(list));
  }
  DELAYD_ASSIGN_OR_RETURN(const ListCursor from, ParseListCursor(command.cursor));
  // There may be 100,000, and everybody waits.
  const size_t limit = command.limit != 0 ? command.limit : limits::kListLimitMax;
  list.queues.reserve(std::min(limit, queues_.size()));
  queues_.ForEachFrom(ToInt(from.id), [&](const Queue& queue) {
    if (queue.stored && list.queues.size() == limit) {
      list.next_cursor = FormatListCursor({.at = {}, .id = JobId{ToInt(queue.id)}});
      return false;
    }
    if (queue.stored) {
      list.queues.push_back(ViewOfQueue(queue));
    }
    return true;
  });
  return Body(std::move(list));
}

StatusOr<Body> EngineCore::Do(const GetStats&) {
  pending_.TouchAll();
  return Body(stats());
}

StatusOr<Body> EngineCore::Do(const Drain& command) {
  draining_ = command.on;
  pending_.TouchAll();
  return Body(stats());
}

StatusOr<Body> EngineCore::Do(const AcceptClock&) {
  highest_wall_ = now_.wall;
  NoteClock();
  pending_.TouchAll();
  return Body(stats());
}

const Status& EngineCore::enqueue_refusal() const {
  return enqueue_refusal_;
}

bool EngineCore::draining() const {
  return draining_;
}

StatsView EngineCore::stats() const {
  // From sums: there may be 100,000 queues, and everybody waits.
  StatsView view = counters_;
  view.scheduled = queues_.sums().pending - fired_count_;
  view.ready = fired_count_ - leases_.size();
  view.leased = leases_.size();
  view.dead = queues_.sums().dead;
  view.urgent = queues_.sums().urgent;
  view.queues = queues_.sums().stored;
  view.waiting = waiters_.size();
  view.draining = draining_;
  view.epoch = epoch_;
  view.commit_sequence = pending_.committed();
  view.next_due = NextDue();
  view.now = now_.wall;
  return view;
}

// From the rows: the wheels' timers are also ends of leases, waits and pauses. They begin where a
// job may still wait: before now, where the wall clock was set forward. What is keyed at the mark
// may be due before it, if that is of a clock that was ahead; behind it the order of keys is that
// of due times, but for the steps of the clock. Of more than so many rows the others are not looked
// at, but for those behind what is ready.
std::optional<WallTime> EngineCore::NextDue() const {
  constexpr size_t kNextDueRowsMax = 1000;
  const Millis back = wall_offsets_.Steps(now_).first;
  std::optional<WallTime> next;
  const auto consider = [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    const auto head = storage::DecodeTimerHead(key, value);
    if (!parts.ok() || !head.ok()) {
      return false;
    }
    const std::optional<Slot> slot = jobs_.Find(parts->id);
    const bool waits = slot ? jobs_[*slot].phase() == Phase::kScheduled
                            : !MomentOf(DueOf(*head)).IsOver(advanced_to_);
    const WallTime due = head->due + StepOfWall(DueOf(*head), boot_id_, now_);
    if (waits && due > now_.wall) {
      next = std::min(next.value_or(due), due);
    }
    return next && parts->key_due > std::max(low_water_mark_.decided(), *next + back);
  };
  pending_.ForEachPut(Table::kTimers, consider);
  // A store that cannot be read is found by whoever needs it to go on.
  const auto look_from = [&](WallTime from) {
    size_t rows = 0;
    static_cast<void>(pending_.Scan(
        Table::kTimers,
        storage::TimerKey(from, JobId{}),
        storage::TimerKey(WallTime::max(), JobId{}),
        [&](std::string_view key, std::string_view value) {
          const bool is_last = !pending_.IsChanging(Table::kTimers, key) && consider(key, value);
          return !is_last && ++rows < kNextDueRowsMax;
        }));
    return rows == kNextDueRowsMax;
  };
  const WallTime first =
      std::max(wall_offsets_.FirstKeyNotDue(advanced_to_), low_water_mark_.durable());
  if (look_from(first)) {
    look_from(std::max(first, LatestKeyOfNow() + Millis(1)));
  }
  return next;
}

}  // namespace delayd::engine
