// The rows that each change of state touches, and what every batch carries besides.
#include <algorithm>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

WallTime EngineCore::KeyDue(WallTime due) const {
  return std::max(due, low_water_mark_.decided());
}

void EngineCore::SetDue(storage::JobRecord* record, const DueSpec& due) {
  if (const auto* at = std::get_if<DueAt>(&due)) {
    record->due_kind = DueKind::kAbsolute;
    record->due = at->at;
    record->boot_id = 0;
    record->boot_due = BootTime();
    record->rounded_up = Micros(0);
    return;
  }
  const Millis delay = std::get<DueAfter>(due).delay;
  wall_offsets_.Note(now_);
  record->due_kind = DueKind::kRelative;
  record->due = now_.wall + delay;
  record->boot_id = boot_id_;
  record->boot_due = now_.boot + delay + (delay.count() == 0 ? Millis(0) : kClockRounding);
  record->rounded_up =
      delay.count() == 0 ? Micros(0) : kClockRounding - now_.boot_rest - kBootRounding;
}

void EngineCore::MoveDue(storage::JobRecord* record, const DueSpec& due) {
  if (!record->delay) {
    // Until now the due time told which delay was asked for.
    record->delay = storage::DelayOf(*record).value_or(Millis(-1));
  }
  SetDue(record, due);
}

void EngineCore::PutIndex(const storage::JobRecord& record,
                          storage::IndexRecord::Place place,
                          WallTime at) {
  const storage::FixedKey key = storage::IndexKey(record.id);
  const bool plain = place != storage::IndexRecord::Place::kDone && storage::IsPlain(record);
  row_value_.clear();
  storage::AppendIndexRecord(
      &row_value_, key, {.place = place, .queue = record.queue, .at = at, .plain = plain});
  pending_.Put(Table::kIndex, key, row_value_);
}

void EngineCore::PutTimerRows(const storage::JobRecord& record, WallTime key_due) {
  const storage::FixedKey key = storage::TimerKey(key_due, record.id);
  row_value_.clear();
  storage::AppendJobRecord(&row_value_, Table::kTimers, key, record);
  pending_.Put(Table::kTimers, key, row_value_);
  pending_.Put(Table::kByQueue, storage::ByQueueKey(record.queue, key_due, record.id), {});
  PutIndex(record, storage::IndexRecord::Place::kTimers, key_due);
}

void EngineCore::DeleteTimerRows(const storage::JobRecord& record, WallTime key_due) {
  pending_.Delete(Table::kTimers, storage::TimerKey(key_due, record.id));
  pending_.Delete(Table::kByQueue, storage::ByQueueKey(record.queue, key_due, record.id));
}

void EngineCore::PutLiveKey(const storage::JobRecord& record) {
  const std::string key = storage::ClientKey(record.queue, record.key);
  pending_.Put(Table::kKeys,
               key,
               storage::EncodeKeyRecord(key, {.id = record.id, .fingerprint = record.fingerprint}));
}

void EngineCore::PutPayload(storage::JobRecord* record) {
  record->payload_bytes = record->payload.size();
  if (record->payload.size() > limits::kInlinePayloadBytesMax) {
    const storage::FixedKey key = storage::IndexKey(record->id);
    pending_.PutLarge(Table::kBig, key, storage::EncodeBigPayload(key, record->payload));
    record->payload_is_big = true;
    record->payload.clear();
  }
}

void EngineCore::PutNewRows(storage::JobRecord* record, WallTime key_due) {
  PutPayload(record);
  PutTimerRows(*record, key_due);
  if (!record->key.empty()) {
    PutLiveKey(*record);
  }
  Queue& queue = queues_[record->queue];
  user_jobs_.Gain(record->user);
  ++queue.enqueued;
  queues_.Count(&queue, {.pending = 1});
  CountChanged(queue);
  ++open_jobs_;
}

void EngineCore::PutMovedRows(const storage::JobRecord& record,
                              WallTime old_key_due,
                              WallTime key_due) {
  if (old_key_due != key_due) {
    DeleteTimerRows(record, old_key_due);
  }
  PutTimerRows(record, key_due);
  ++open_jobs_;
}

void EngineCore::PutRevivedRows(const storage::JobRecord& record, WallTime died, WallTime key_due) {
  pending_.Delete(Table::kDead, storage::DeadKey(record.queue, died, record.id));
  PutTimerRows(record, key_due);
  Queue& queue = queues_[record.queue];
  queues_.Count(&queue, {.pending = 1, .dead = -1});
  CountChanged(queue);
  ++open_jobs_;
}

void EngineCore::PutDeadRows(const storage::JobRecord& record, WallTime key_due, WallTime died) {
  DeleteTimerRows(record, key_due);
  const storage::FixedKey key = storage::DeadKey(record.queue, died, record.id);
  pending_.Put(Table::kDead, key, storage::EncodeJobRecord(Table::kDead, key, record));
  PutIndex(record, storage::IndexRecord::Place::kDead, died);
  Queue& queue = queues_[record.queue];
  queue.first_dead = std::min(queue.first_dead, died);
  queues_.Count(&queue, {.pending = -1, .dead = 1});
  CountChanged(queue);
  ++open_jobs_;
}

void EngineCore::PutFinishedRows(const storage::JobRecord& record,
                                 const storage::IndexRecord& place,
                                 bool cancelled) {
  Queue& queue = queues_[record.queue];
  if (place.place == storage::IndexRecord::Place::kTimers) {
    DeleteTimerRows(record, place.at);
    queues_.Count(&queue, {.pending = -1});
  } else {
    pending_.Delete(Table::kDead, storage::DeadKey(record.queue, place.at, record.id));
    queues_.Count(&queue, {.dead = -1});
  }
  user_jobs_.Lose(record.user);
  CountChanged(queue);
  ++open_jobs_;
  if (record.payload_is_big) {
    pending_.Delete(Table::kBig, storage::IndexKey(record.id));
  }
  PutEnd(record, cancelled);
}

// Puts the rows that are kept of a finished job, for as long as its queue says; that may be none.
void EngineCore::PutEnd(const storage::JobRecord& record, bool cancelled) {
  const Queue& queue = queues_[record.queue];
  const Millis key_kept = record.key.empty() ? Millis(0) : queue.settings.key_retention;
  const Millis kept = std::max(key_kept, queue.settings.history_retention);
  if (kept.count() == 0) {
    pending_.Delete(Table::kIndex, storage::IndexKey(record.id));
    if (!record.key.empty()) {
      pending_.Delete(Table::kKeys, storage::ClientKey(record.queue, record.key));
    }
    return;
  }
  // Rows of kDone below the mark are not looked at any more, so none may be put there. The row is
  // not kept longer for that: the mark may be of a clock that was ahead.
  const WallTime finished = std::max(now_.wall, finished_rows_.low_water_mark());
  PutIndex(record, storage::IndexRecord::Place::kDone, finished);
  if (!record.key.empty()) {
    const std::string key = storage::ClientKey(record.queue, record.key);
    pending_.Put(Table::kKeys,
                 key,
                 storage::EncodeKeyRecord(key,
                                          {.id = record.id,
                                           .fingerprint = record.fingerprint,
                                           .expiry = now_.wall + key_kept,
                                           .finished = finished,
                                           .cancelled = cancelled}));
  }
  PutDoneRow(record, finished, now_.wall + kept, cancelled);
}

void EngineCore::PutDoneRow(const storage::JobRecord& record,
                            WallTime finished,
                            WallTime kept_until,
                            bool cancelled) {
  storage::DoneRecord done{.queue = record.queue,
                           .key = record.key,
                           .cancelled = cancelled,
                           .attempts = record.attempts,
                           .due = record.due,
                           .created = record.created,
                           .kept_until = kept_until};
  if (queues_[record.queue].settings.history_retention.count() > 0) {
    done.story = record;
  }
  const storage::FixedKey done_key = storage::DoneKey(finished, record.id);
  pending_.Put(Table::kDone, done_key, storage::EncodeDoneRecord(done_key, done));
  ChangeDoneCount(queues_[record.queue], 1);
  finished_rows_.Add(pending_.open_sequence(), finished, now_);
}

void EngineCore::ChangeDoneCount(Queue& queue, int64_t by) {
  if (queue.counts.done) {
    *queue.counts.done += static_cast<uint64_t>(by);
    CountChanged(queue);
  }
}

void EngineCore::CountChanged(Queue& queue) {
  if (!queue.counts_changed) {
    queue.counts_changed = true;
    counts_changed_.push_back(queue.id);
  }
}

Queue& EngineCore::QueueForNewJob(const std::string& name) {
  Queue& queue = FindOrCreateQueue(name);
  if (!queue.stored) {
    PutQueueRow(queue);
    CountChanged(queue);
    queues_.NoteStored(&queue);
  }
  return queue;
}

WallTime EngineCore::ComputeLowWaterMark() {
  WallTime mark = std::min(now_.wall, FirstOnDisk());
  const auto is_live = [this](const FiredKeys::Key& key) {
    const JobEntry& entry = jobs_[key.slot];
    return entry.phase() != Phase::kFree && entry.phase() != Phase::kScheduled &&
           entry.key_due() == key.key_due;
  };
  if (const auto fired = fired_.Min(fired_count_, is_live)) {
    mark = std::min(mark, *fired);
  }
  boot_offsets_.Forget(boot_wheel_.NextExpiration());
  return std::min(mark, FirstKeyInWheels());
}

void EngineCore::CloseBatch(bool forget_queues) {
  using storage::EncodeNumber;
  const auto put_number = [this](std::string_view key, uint64_t number) {
    pending_.Put(Table::kMeta, key, EncodeNumber(key, number));
  };
  if (low_water_mark_.IsLookedFor(open_jobs_, options_.jobs_per_mark) &&
      low_water_mark_.Raise(ComputeLowWaterMark(), pending_.open_sequence())) {
    put_number(storage::kLowWaterMarkKey,
               static_cast<uint64_t>(ToMillis(low_water_mark_.decided())));
  }
  for (const QueueId id : counts_changed_) {
    Queue& queue = queues_[id];
    const std::string key = storage::QueueCountsKey(id);
    pending_.Put(Table::kMeta, key, storage::EncodeQueueCounts(key, queue.counts));
    queue.counts_changed = false;
    NoteEmpty(queue);
  }
  counts_changed_.clear();
  queues_.Written(pending_.open_bytes());
  if (forget_queues) {
    ForgetQueues();
  }
  PutUserCounts();
  if (const std::optional<uint64_t> mark = job_ids_.TakeMark()) {
    put_number(storage::kIdHighWaterMarkKey, *mark);
  }
  if (const std::optional<Millis> most = wall_offsets_.TakeMost()) {
    put_number(storage::kWallOffsetMaxKey, static_cast<uint64_t>(most->count()));
  }
  if (const std::optional<Millis> least = wall_offsets_.TakeLeast()) {
    put_number(storage::kWallOffsetMinKey, static_cast<uint64_t>(least->count()));
  }
  if (clock_note_.IsOff(options_.clock_note_min, now_.boot)) {
    NoteClock();
  }
  put_number(storage::kBatchNumberKey, pending_.open_sequence());
  own_work_.Close(pending_.open_sequence());
  pending_.Close(open_jobs_);
  open_jobs_ = 0;
}

}  // namespace delayd::engine
