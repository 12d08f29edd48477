// Finding a job by id or key; cancel and reschedule.
#include <algorithm>

#include "base/coding.h"
#include "base/ending_text.h"
#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"
#include "storage/record_row.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::Table;

namespace {

Status UnknownJob(JobId id) {
  return NotFound("job " + std::to_string(ToInt(id)) +
                  " is not known: it never was, or it finished and was forgotten");
}

}  // namespace

StatusOr<std::optional<storage::KeyRecord>> EngineCore::ReadKey(const Queue& queue,
                                                                std::string_view key) {
  const std::string row = storage::ClientKey(queue.id, key);
  std::string value;
  const Status got = pending_.Get(Table::kKeys, row, &value);
  if (got.code() == StatusCode::kNotFound) {
    return std::optional<storage::KeyRecord>();
  }
  DELAYD_RETURN_IF_ERROR(got);
  DELAYD_ASSIGN_OR_RETURN(const storage::KeyRecord record, storage::DecodeKeyRecord(row, value));
  return std::optional(record);
}

StatusOr<std::optional<storage::KeyRecord>> EngineCore::FindKey(const Queue& queue,
                                                                std::string_view key) {
  DELAYD_ASSIGN_OR_RETURN(std::optional<storage::KeyRecord> record, ReadKey(queue, key));
  if (record && record->finished &&
      !key_retention_.IsKept(
          *record->finished, *record->expiry, queue.settings.key_retention, now_)) {
    record.reset();
  }
  return record;
}

StatusOr<storage::DoneRecord> EngineCore::ReadDone(JobId id, WallTime finished) {
  const storage::FixedKey key = storage::DoneKey(finished, id);
  std::string value;
  const Status got = pending_.Get(Table::kDone, key, &value);
  if (got.code() == StatusCode::kNotFound) {
    return DataLoss("job " + std::to_string(ToInt(id)) +
                        ": the record of its end is missing; run 'delayctl verify'",
                    "damaged");
  }
  DELAYD_RETURN_IF_ERROR(got);
  DELAYD_ASSIGN_OR_RETURN(storage::DoneRecord done, storage::DecodeDoneRecord(key, value));
  DELAYD_RETURN_IF_ERROR(queues_.CheckKnown(done.queue, id));
  return done;
}

StatusOr<EngineCore::Located> EngineCore::LocateFinished(JobId id, WallTime finished) {
  DELAYD_ASSIGN_OR_RETURN(const storage::DoneRecord done, ReadDone(id, finished));
  if (IsForgotten(done)) {
    return UnknownJob(id);
  }
  return Located{.state = JobState::kFinished,
                 .id = id,
                 .index = {.place = IndexRecord::Place::kDone, .queue = done.queue, .at = finished},
                 .finished = Located::Finished{.at = finished, .cancelled = done.cancelled}};
}

EngineCore::Located EngineCore::LocateSlot(Slot slot) const {
  const JobEntry& entry = jobs_[slot];
  return {.state = entry.phase() == Phase::kScheduled ? JobState::kScheduled
                   : entry.phase() == Phase::kLeased  ? JobState::kLeased
                                                      : JobState::kReady,
          .id = entry.id(),
          .slot = slot,
          .index = {.place = IndexRecord::Place::kTimers,
                    .queue = entry.queue(),
                    .at = entry.key_due(),
                    .plain = entry.plain() && entry.phase() != Phase::kDamaged}};
}

StatusOr<EngineCore::Located> EngineCore::LocateId(JobId id) {
  if (const std::optional<Slot> slot = jobs_.Find(id)) {
    return LocateSlot(*slot);
  }
  Located located{.id = id};
  const storage::FixedKey key = storage::IndexKey(id);
  std::string value;
  const Status got = pending_.Get(Table::kIndex, key, &value);
  if (got.code() == StatusCode::kNotFound) {
    return UnknownJob(id);
  }
  DELAYD_RETURN_IF_ERROR(got);
  DELAYD_ASSIGN_OR_RETURN(located.index, storage::DecodeIndexRecord(key, value));
  if (located.index.place == IndexRecord::Place::kDone) {
    return LocateFinished(id, located.index.at);
  }
  DELAYD_RETURN_IF_ERROR(queues_.CheckKnown(located.index.queue, id));
  if (located.index.place == IndexRecord::Place::kDead) {
    located.state = JobState::kDead;
  } else {
    DELAYD_ASSIGN_OR_RETURN(located.state, StateOnDisk(located.index.at, id));
  }
  return located;
}

StatusOr<storage::TimerHead> EngineCore::ReadHead(WallTime key_due, JobId id) const {
  const storage::FixedKey key = storage::TimerKey(key_due, id);
  std::string value;
  DELAYD_RETURN_IF_ERROR(pending_.Get(Table::kTimers, key, &value));
  return storage::DecodeTimerHead(key, value);
}

// Ready if it would have fired in memory. A record that is damaged is noticed by whoever needs more
// of it.
StatusOr<JobState> EngineCore::StateOnDisk(WallTime key_due, JobId id) const {
  if (key_due > LatestKeyOfNow()) {
    return JobState::kScheduled;
  }
  const StatusOr<storage::TimerHead> head = ReadHead(key_due, id);
  if (IsReadFailure(head.status())) {
    return head.status();
  }
  return head.ok() && MomentOf(DueOf(*head)).IsOver(advanced_to_) ? JobState::kReady
                                                                  : JobState::kScheduled;
}

StatusOr<EngineCore::Located> EngineCore::Locate(const JobRef& ref) {
  if (const auto* id = std::get_if<JobId>(&ref)) {
    return LocateId(*id);
  }
  const auto& by_key = std::get<KeyRef>(ref);
  DELAYD_RETURN_IF_ERROR(ValidateQueueName(by_key.queue));
  DELAYD_RETURN_IF_ERROR(ValidateKey(by_key.key));
  const Queue* queue = FindIfStored(by_key.queue);
  std::optional<storage::KeyRecord> record;
  if (queue != nullptr) {
    DELAYD_ASSIGN_OR_RETURN(record, ReadKey(*queue, by_key.key));
  }
  if (record && !record->finished) {
    return LocateId(record->id);
  }
  if (record && *record->expiry > now_.wall) {
    return FinishedByKey(*record);
  }
  if (record) {
    // The key is free again; what is kept of the job may tell of it still.
    StatusOr<Located> located = LocateFinished(record->id, *record->finished);
    if (located.status().code() != StatusCode::kNotFound) {
      return located;
    }
  }
  return NotFound(DescribeJobRef(ref) +
                  " is not known: no job has it, or it finished and was forgotten");
}

EngineCore::Located EngineCore::FinishedByKey(const storage::KeyRecord& record) {
  return {.state = JobState::kFinished,
          .id = record.id,
          .index = {.place = IndexRecord::Place::kDone, .at = *record.finished},
          .finished = Located::Finished{.at = *record.finished, .cancelled = record.cancelled}};
}

StatusOr<storage::JobRecord> EngineCore::ReadRecord(const Located& located, size_t more) {
  const auto [table, key] = storage::RowOfRecord(located.index, located.id);
  const Status got = more == 0
                         ? pending_.Get(table, key, &row_read_)
                         : pending_.GetInOrder(key, LatestKeyOfNow() + Millis(1), more, &row_read_);
  if (got.code() == StatusCode::kNotFound) {
    return DataLoss("job " + std::to_string(ToInt(located.id)) +
                        ": its record is missing; run 'delayctl verify'",
                    "damaged");
  }
  DELAYD_RETURN_IF_ERROR(got);
  return storage::DecodeJobRecord(table, key, row_read_);
}

Status EngineCore::RefuseFinished(const Located& located, const JobRef& ref) const {
  const std::string who =
      std::holds_alternative<JobId>(ref)
          ? DescribeJobRef(ref)
          : DescribeJobRef(ref) + " names job " + std::to_string(ToInt(located.id)) + ", which";
  return FailedPrecondition(who + FormatEnding(located.finished->cancelled, located.finished->at),
                            "finished");
}

Status EngineCore::RefuseState(const Located& located, const JobRef& ref, std::string_view why) {
  const std::string_view state = JobStateName(located.state);
  return FailedPrecondition(
      DescribeJobRef(ref) + " is " + std::string(state) + ": " + std::string(why), state);
}

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
  // What is answered, compared or kept comes from the record; else the place is enough to end it.
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
    const Status taken = CancelOne(Cancel{.job = id, .if_tag = {}, .brief = true}, &record);
    if (IsReadFailure(taken)) {
      return taken;
    }
    if (taken.ok()) {
      ++result.cancelled;
    } else {
      result.refused.push_back({.id = id, .reason = std::string(taken.reason())});
    }
  }
  return Body(std::move(result));
}

StatusOr<Body> EngineCore::Do(const Touch& command) {
  DELAYD_ASSIGN_OR_RETURN(const Located located, Locate(command.job));
  if (located.state == JobState::kFinished) {
    return RefuseFinished(located, command.job);
  }
  if (located.state == JobState::kLeased || located.state == JobState::kDead) {
    return RefuseState(located, command.job, "only scheduled and ready jobs can be touched");
  }
  DELAYD_ASSIGN_OR_RETURN(storage::JobRecord record, ReadRecord(located));
  DELAYD_RETURN_IF_ERROR(CheckTag(located, record, command.job, command.if_tag));
  const std::optional<Millis> delay = storage::DelayOf(record);
  if (!delay) {
    return FailedPrecondition(DescribeJobRef(command.job) +
                                  " was enqueued with a due time and has no delay to repeat; "
                                  "reschedule it instead",
                              "no_delay");
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
  if (!command.due && !command.priority) {
    return InvalidArgument("nothing to change; give a delay, a due time or a priority",
                           "invalid_reschedule");
  }
  if (command.due) {
    DELAYD_RETURN_IF_ERROR(ValidateDue(*command.due));
  }
  DELAYD_ASSIGN_OR_RETURN(const Located located, Locate(command.job));
  if (located.state == JobState::kFinished) {
    return RefuseFinished(located, command.job);
  }
  if (located.state == JobState::kLeased || located.state == JobState::kDead) {
    return RefuseState(located, command.job, "only scheduled and ready jobs can be moved");
  }
  DELAYD_ASSIGN_OR_RETURN(storage::JobRecord record, ReadRecord(located));
  DELAYD_RETURN_IF_ERROR(CheckTag(located, record, command.job, command.if_tag));
  const JobState state =
      MoveLocated(located, &record, command.due, command.priority, Remembered::kYes);
  return BodyOf(ViewOf(record, state));
}

}  // namespace delayd::engine
