// Handing out one job by name, and giving one back as if it had not been handed out.
#include <algorithm>
#include <utility>

#include "daemon/engine/engine_core.h"
#include "daemon/engine/lease_checks.h"

namespace delayd::engine {

using storage::JobRecord;

StatusOr<Body> EngineCore::Do(const LeaseJob& command) {
  DELAYD_RETURN_IF_ERROR(CheckLeaseTime(command.lease));
  DELAYD_RETURN_IF_ERROR(CheckClient(command.client));
  DELAYD_ASSIGN_OR_RETURN(const Located located, Locate(command.job));
  if (located.state == JobState::kFinished) {
    return RefuseFinished(located, command.job);
  }
  if (located.state == JobState::kLeased) {
    return RefuseState(located, command.job, "a worker has it; try again when its lease is over");
  }
  DELAYD_ASSIGN_OR_RETURN(JobRecord record, ReadRecord(located));
  JobRecord with_payload = record;
  DELAYD_RETURN_IF_ERROR(ReadPayload(&with_payload));
  WallTime key_due = located.index.at;
  if (located.state == JobState::kDead) {
    // Pending again: after a crash, or a lease that ends without an ack, it is among the others.
    MoveDue(&record, DueAfter{});
    key_due = KeyDue(record.due);
    PutRevivedRows(record, located.index.at, key_due);
    record.payload = std::move(with_payload.payload);
  } else {
    record = std::move(with_payload);
  }
  Slot slot = 0;
  if (located.slot) {
    slot = *located.slot;
    Unplace(slot);
  } else {
    JobEntry entry(record.id, record.queue, key_due, record.priority, storage::IsPlain(record));
    entry.set_phase(Phase::kLeased);
    entry.set_on_boot_clock(DueOf(record).IsOnBootClock(boot_id_));
    slot = jobs_.Add(entry);
  }
  fired_.Add(key_due, slot);
  const Millis late = LatenessOf(jobs_[slot], record);
  Leased leased;
  leased.jobs.push_back(
      Grant(slot, std::move(record), std::max(late, Millis(0)), command.lease, command.client));
  return Body(std::move(leased));
}

void EngineCore::ReturnUntouched(Slot slot) {
  const JobRecord record = std::move(*LeaseOf(slot).record);
  Settle(record, jobs_[slot].key_due(), slot);
}

StatusOr<Body> EngineCore::Do(const GiveBack& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  StatusOr<JobRecord> record = ReadRecord(LocateSlot(slot));
  if (record.status().code() == StatusCode::kDataLoss) {
    Damaged(slot, record.status());
  }
  DELAYD_RETURN_IF_ERROR(record.status());
  // It uses no attempt, but it is counted: workers recognise a job that kills them by this count.
  ++record->returns;
  const WallTime old_key_due = jobs_[slot].key_due();
  WallTime key_due = old_key_due;
  // It was taken in time, so its time until it expires begins anew, as after a nack.
  if (record->expires_after.count() > 0 && MomentOf(DueOf(*record)).IsOver(now_)) {
    MoveDue(&*record, DueAfter{});
    key_due = KeyDue(record->due);
  }
  PutMovedRows(*record, old_key_due, key_due);
  const JobState state = Settle(*record, key_due, slot);
  own_work_.Note();
  return BodyOf(ViewOf(*record, state));
}

}  // namespace delayd::engine
