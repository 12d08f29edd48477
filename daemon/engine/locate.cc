// Finding a queue, and a job by its id or key: where it is, in which state, and reading its record.
#include "daemon/engine/engine_core.h"
#include "daemon/engine/located.h"
#include "storage/keys.h"
#include "storage/record_row.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::JobRecord;
using storage::Table;

namespace {

Status UnknownJob(JobId id) {
  return NotFound("job " + std::to_string(ToInt(id)) +
                  " is not known: it never was, or it finished and was forgotten");
}

}  // namespace

bool IsReadFailure(const Status& status) {
  return status.code() == StatusCode::kInternal || status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kPermissionDenied;
}

// Null when there is none. The answer must wait for the batch that stores or forgets the queue.
const Queue* EngineCore::FindIfStored(const std::string& name) const {
  static_cast<void>(pending_.IsChanging(Table::kQueues, name));
  const Queue* queue = queues_.Find(name);
  return queue != nullptr && queue->stored ? queue : nullptr;
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

StatusOr<const Queue*> EngineCore::FindStoredQueue(const std::optional<std::string>& name) const {
  if (!name) {
    return static_cast<const Queue*>(nullptr);
  }
  return FindStoredQueue(*name);
}

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

StatusOr<Located> EngineCore::LocateFinished(JobId id, WallTime finished) {
  DELAYD_ASSIGN_OR_RETURN(const storage::DoneRecord done, ReadDone(id, finished));
  if (IsForgotten(done)) {
    return UnknownJob(id);
  }
  return Located{.state = JobState::kFinished,
                 .id = id,
                 .index = {.place = IndexRecord::Place::kDone, .queue = done.queue, .at = finished},
                 .finished = Located::Finished{.at = finished, .cancelled = done.cancelled}};
}

Located EngineCore::LocateSlot(Slot slot) const {
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

StatusOr<Located> EngineCore::LocateId(JobId id) {
  if (const std::optional<Slot> slot = jobs_.Find(id)) {
    // Its state in memory, too, may rest on a batch under way, and a refusal tells no more than it.
    static_cast<void>(pending_.IsChanging(Table::kIndex, storage::IndexKey(id)));
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

// Ready if it would have fired in memory. A damaged record is noticed by the caller that needs more
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

StatusOr<Located> EngineCore::Locate(const JobRef& ref) {
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
    // The key is free again, but the record of the job's end may still be kept.
    StatusOr<Located> located = LocateFinished(record->id, *record->finished);
    if (located.status().code() != StatusCode::kNotFound) {
      return located;
    }
  }
  return NotFound(DescribeJobRef(ref) +
                  " is not known: no job has it, or it finished and was forgotten");
}

Located FinishedByKey(const storage::KeyRecord& record) {
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
  if (!got.ok()) {
    return got.WithContext("job " + std::to_string(ToInt(record->id)));
  }
  DELAYD_ASSIGN_OR_RETURN(const std::string_view payload, storage::DecodeBigPayload(key, value));
  record->payload.assign(payload);
  return OkStatus();
}

Status RefuseFinished(const Located& located, const JobRef& ref) {
  const std::string who =
      std::holds_alternative<JobId>(ref)
          ? DescribeJobRef(ref)
          : DescribeJobRef(ref) + " names job " + std::to_string(ToInt(located.id)) + ", which";
  const auto [at, cancelled] = *located.finished;
  Status refusal =
      FailedPrecondition(who + (cancelled ? " was cancelled already at " : " was acked at ") +
                             FormatUtc(at) + " and is finished; nothing was changed",
                         "finished");
  refusal.AddDetail("outcome", std::string(OutcomeName(cancelled)));
  refusal.AddDetail("finished", FormatUtc(at));
  return refusal;
}

Status EngineCore::RefuseState(const Located& located,
                               const JobRef& ref,
                               std::string_view why) const {
  const std::string_view state = JobStateName(located.state);
  Status refusal = FailedPrecondition(
      DescribeJobRef(ref) + " is " + std::string(state) + ": " + std::string(why), state);
  if (located.state != JobState::kLeased) {
    return refusal;
  }
  JobView view;
  AddLease(LeaseOf(*located.slot), &view);
  refusal.AddDetail("lease_expires", FormatUtc(*view.lease_expires));
  if (!view.client.empty()) {
    refusal.AddDetail("client", view.client);
  }
  return refusal;
}

}  // namespace delayd::engine
