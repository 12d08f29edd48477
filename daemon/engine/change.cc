// Cancel, reschedule and touch of one job.
#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/enqueue_checks.h"

namespace delayd::engine {

Status EngineCore::CheckTag(const Located& located,
                            const storage::JobRecord& record,
                            const JobRef& ref,
                            const std::vector<std::string>& tags) const {
  if (tags.empty() || std::ranges::find(tags, TagOf(ViewOf(record, located.state))) != tags.end()) {
    return OkStatus();
  }
  const auto is_ours = [](std::string_view tag) { return ParseFingerprint(tag).has_value(); };
  if (std::ranges::none_of(tags, is_ours)) {
    return FailedPrecondition(DescribeJobRef(ref) +
                                  " cannot be compared: the request has no tag of delayd's, which "
                                  "a proxy that compresses may have changed; send the job's member "
                                  "etag",
                              "changed");
  }
  return FailedPrecondition(DescribeJobRef(ref) + " has changed since it was read: it is " +
                                std::string(JobStateName(located.state)) + " and due " +
                                FormatUtc(DueByNow(record)) + "; look at it again",
                            "changed");
}

void EngineCore::CancelLocated(const Located& located, storage::JobRecord* record) {
  AddLastEvent(record, storage::JobEvent::Kind::kCancelled, {});
  PutFinishedRows(*record, located.index, /*cancelled=*/true);
  if (located.slot) {
    Forget(*located.slot);
  }
  ++queues_[record->queue].cancelled;
  ++counters_.cancelled;
}

// `record`: the job as it was, as far as the answer needs it.
Status EngineCore::CancelOne(const Cancel& command, storage::JobRecord* record) {
  DELAYD_ASSIGN_OR_RETURN(const Located located, Locate(command.job));
  if (located.state == JobState::kFinished) {
    return RefuseFinished(located, command.job);
  }
  if (located.state == JobState::kLeased) {
    return RefuseState(
        located,
        command.job,
        "a worker has it, and only that worker can end it; try again when its lease is over");
  }
  // The record is read only where the answer, a tag or the history needs it: to end a plain job,
  // its place is enough.
  const bool is_told = !command.brief || !command.if_tag.empty() ||
                       queues_[located.index.queue].settings.history_retention.count() > 0;
  if (is_told || !located.index.plain) {
    DELAYD_ASSIGN_OR_RETURN(*record, ReadRecord(located));
  } else {
    record->id = located.id;
    record->queue = located.index.queue;
  }
  DELAYD_RETURN_IF_ERROR(CheckTag(located, *record, command.job, command.if_tag));
  CancelLocated(located, record);
  return OkStatus();
}

StatusOr<Body> EngineCore::Do(const Cancel& command) {
  storage::JobRecord record;
  DELAYD_RETURN_IF_ERROR(CancelOne(command, &record));
  return command.brief ? Body() : BodyOf(FinishedView(record, /*cancelled=*/true));
}

StatusOr<Body> EngineCore::Do(const CancelIds& command) {
  if (command.jobs.empty() || command.jobs.size() > limits::kCancelIdsMax) {
    return InvalidArgument(std::to_string(command.jobs.size()) + " ids; send 1 to " +
                               std::to_string(limits::kCancelIdsMax),
                           "invalid_count");
  }
  CancelledIds result;
  for (const JobId id : command.jobs) {
    storage::JobRecord record;
    Status taken = CancelOne(Cancel{.job = id, .if_tag = {}, .brief = true}, &record);
    if (IsReadFailure(taken)) {
      return taken;
    }
    if (taken.ok()) {
      ++result.cancelled;
    } else {
      result.refused.push_back({.id = id, .status = std::move(taken)});
    }
  }
  return Body(std::move(result));
}

StatusOr<Located> EngineCore::LocateToMove(const JobRef& ref,
                                           const std::vector<std::string>& tags,
                                           const std::string& done,
                                           storage::JobRecord* record) {
  DELAYD_ASSIGN_OR_RETURN(Located located, Locate(ref));
  if (located.state == JobState::kFinished) {
    return RefuseFinished(located, ref);
  }
  if (located.state == JobState::kLeased || located.state == JobState::kDead) {
    return RefuseState(located, ref, "only scheduled and ready jobs can be " + done);
  }
  DELAYD_ASSIGN_OR_RETURN(*record, ReadRecord(located));
  DELAYD_RETURN_IF_ERROR(CheckTag(located, *record, ref, tags));
  return located;
}

StatusOr<Body> EngineCore::Do(const Touch& command) {
  storage::JobRecord record;
  DELAYD_ASSIGN_OR_RETURN(const Located located,
                          LocateToMove(command.job, command.if_tag, "touched", &record));
  const std::optional<Millis> delay = storage::DelayOf(record);
  if (!delay) {
    return FailedPrecondition(DescribeJobRef(command.job) +
                                  " was enqueued with a due time and has no delay to repeat; "
                                  "reschedule it instead",
                              "no_delay");
  }
  if (const Status fits = CheckDue(DueAfter{*delay}, now_.wall); !fits.ok()) {
    return fits.WithContext(DescribeJobRef(command.job));
  }
  const JobState state = MoveLocated(located, &record, DueAfter{*delay}, {}, Remembered::kNo);
  return BodyOf(ViewOf(record, state));
}

JobState EngineCore::MoveLocated(const Located& located,
                                 storage::JobRecord* record,
                                 const std::optional<DueSpec>& due,
                                 std::optional<uint32_t> priority,
                                 Remembered remembered) {
  if (due) {
    MoveDue(record, *due);
    if (remembered == Remembered::kYes) {
      AddEvent(record, storage::JobEvent::Kind::kMoved, {}, {});
    }
  }
  record->priority = priority.value_or(record->priority);
  const WallTime key_due = due ? KeyDue(record->due) : located.index.at;
  PutMovedRows(*record, located.index.at, key_due);
  ++counters_.rescheduled;
  return Settle(*record, key_due, located.slot);
}

StatusOr<Body> EngineCore::Do(const Reschedule& command) {
  DELAYD_RETURN_IF_ERROR(CheckMove(command.due, command.priority, now_.wall));
  storage::JobRecord record;
  DELAYD_ASSIGN_OR_RETURN(const Located located,
                          LocateToMove(command.job, command.if_tag, "moved", &record));
  const JobState state =
      MoveLocated(located, &record, command.due, command.priority, Remembered::kYes);
  return BodyOf(ViewOf(record, state));
}

}  // namespace delayd::engine
