// What clients see of one job.
#include <algorithm>

#include "daemon/engine/engine_core.h"

namespace delayd::engine {

using storage::JobRecord;

Body BodyOf(JobView view) {
  return Indirect<JobView>(std::move(view));
}

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
  const DueTimes end{.kind = DueKind::kRelative,
                     .wall = lease.expires_wall,
                     .boot_id = boot_id_,
                     .boot = lease.expires};
  view->lease_expires = end.wall + StepOfWall(end, boot_id_, now_);
  view->lease_ends = lease.expires;
}

// For a leased job, without what AddLease adds.
JobView EngineCore::ViewOfRecord(const JobRecord& record, JobState state) const {
  JobView view;
  view.id = record.id;
  view.queue = queues_[record.queue].name;
  view.key = record.key;
  view.state = state;
  view.due_kind = record.due_kind;
  // A job that has ended keeps the due time of its record.
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
    const Millis left = DueOf(record).IsOnBootClock(boot_id_) ? record.boot_due - now_.boot
                                                              : record.due - now_.wall;
    view.time_left = std::max(left, Millis(0));
  }
  if (state == JobState::kLeased) {
    ++view.reserves;
    ++view.attempt;
  }
  return view;
}

WallTime EngineCore::DueByNow(const JobRecord& record) const {
  return record.due + StepOfWall(DueOf(record), boot_id_, now_);
}

JobView EngineCore::FinishedView(const JobRecord& record, bool cancelled) const {
  JobView view = ViewOf(record, JobState::kFinished);
  view.finished = now_.wall;
  view.outcome = OutcomeName(cancelled);
  view.reserves += cancelled ? 0 : 1;  // the hand-out that was acked
  return view;
}

// Adds what views of many jobs, and of jobs handed to workers, leave out.
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
  view.outcome = OutcomeName(done.cancelled);
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

}  // namespace delayd::engine
