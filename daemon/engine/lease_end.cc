// How a lease ends, by ack, nack, bury or timeout, and how it is extended.
#include <algorithm>
#include <cmath>

#include "base/coding.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/enqueue_checks.h"
#include "daemon/engine/lease_checks.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::JobEvent;
using storage::JobRecord;

namespace {

Status LeaseLost(JobId id) {
  return FailedPrecondition(
      "the lease of job " + std::to_string(ToInt(id)) +
          " is over: the job was acked, its time ran out, it was given back, or the daemon was "
          "started anew; nothing was changed, and 'delayctl show' tells how the job is",
      "lease_lost");
}

// If no attempt has been counted yet, as a nack may ask for, the wait is that after the first.
Millis BackoffOf(const Backoff& backoff, JobId id, uint32_t attempts) {
  const double wait = static_cast<double>(backoff.initial.count()) *
                      std::pow(backoff.factor, std::max(static_cast<double>(attempts) - 1, 0.0));
  const double capped = std::min(wait, static_cast<double>(backoff.max.count()));
  // Jobs that failed together must not come back together. The jitter follows from id and attempt,
  // so that a replay gives the same.
  std::string seed;
  AppendU64(&seed, ToInt(id));
  AppendU32(&seed, attempts);
  const double jitter = backoff.jitter * static_cast<double>(Fingerprint(seed) % 1024) / 1024;
  return Millis(static_cast<int64_t>(capped * (1 - jitter)));
}

}  // namespace

StatusOr<Slot> EngineCore::FindLease(const LeaseToken& token) const {
  const std::optional<Slot> slot = jobs_.Find(token.job);
  if (!slot || token.epoch != epoch_ || jobs_[*slot].phase() != Phase::kLeased ||
      LeaseOf(*slot).sequence != token.sequence) {
    return LeaseLost(token.job);
  }
  return *slot;
}

// A lease holds the record without its payload, which only a history needs at the end of the job.
void EngineCore::KeepForHistory(Slot slot, JobRecord* record) {
  if (queues_[record->queue].settings.history_retention.count() == 0) {
    return;
  }
  StatusOr<JobRecord> whole = ReadRecord(LocateSlot(slot));
  if (whole.ok()) {
    *record = *std::move(whole);
  } else if (IsReadFailure(whole.status())) {
    Die(whole.status());
  } else {
    incidents_.push_back(whole.status());
  }
}

void EngineCore::AckSlot(Slot slot, JobView* view) {
  const LeaseInfo& lease = LeaseOf(slot);
  JobRecord* const record = lease.record.get();
  KeepForHistory(slot, record);
  ++record->attempts;
  AddLastEvent(record, JobEvent::Kind::kAcked, lease.client);
  PutFinishedRows(
      *record,
      {.place = IndexRecord::Place::kTimers, .queue = record->queue, .at = jobs_[slot].key_due()},
      /*cancelled=*/false);
  ++queues_[record->queue].acked;
  ++counters_.acked;
  if (view != nullptr) {
    *view = FinishedView(*record, /*cancelled=*/false);
  }
  Forget(slot);
}

StatusOr<Body> EngineCore::Do(const Ack& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  if (command.brief) {
    AckSlot(slot, nullptr);
    return Body();
  }
  JobView view;
  AckSlot(slot, &view);
  return BodyOf(std::move(view));
}

StatusOr<Body> EngineCore::Do(const AckMany& command) {
  if (command.tokens.empty() || command.tokens.size() > limits::kLeaseCountMax) {
    return InvalidArgument(std::to_string(command.tokens.size()) + " lease tokens; send 1 to " +
                               std::to_string(limits::kLeaseCountMax),
                           "invalid_count");
  }
  // All jobs are looked up before the first is acked: so the processor waits for memory once, and
  // not for one job after the other.
  size_t known = 0;
  for (const LeaseToken& token : command.tokens) {
    known += jobs_.Find(token.job).has_value() ? 1U : 0U;
  }
  AckedMany result;
  result.lost.reserve(command.tokens.size() - known);
  for (const LeaseToken& token : command.tokens) {
    if (const StatusOr<Slot> slot = FindLease(token); slot.ok()) {
      AckSlot(*slot, nullptr);
      ++result.acked;
    } else {
      result.lost.push_back(token);
    }
  }
  return Body(std::move(result));
}

// Puts the job back into its queue, or among the dead ones when it is buried or the attempt was its
// last.
Status EngineCore::EndLease(Slot slot, const LeaseEnd& end, JobView* view) {
  DELAYD_ASSIGN_OR_RETURN(JobRecord record, ReadRecord(LocateSlot(slot)));
  NoteLeaseEnd(&record, end, LeaseOf(slot).client);
  record.attempts += end.counts_as_attempt ? 1 : 0;
  const bool was_last_attempt =
      end.counts_as_attempt && record.max_attempts != 0 && record.attempts >= record.max_attempts;
  JobState state = JobState::kDead;
  if (end.how == JobEvent::Kind::kBuried || was_last_attempt) {
    MoveToDead(slot, record);
  } else {
    state = PutBack(slot, end, &record);
  }
  if (view != nullptr) {
    *view = ViewOf(record, state);
  }
  return OkStatus();
}

void EngineCore::MoveToDead(Slot slot, const JobRecord& record) {
  PutDeadRows(record, jobs_[slot].key_due(), now_.wall);
  Forget(slot);
  ++counters_.died;
}

// Puts the job into its queue, due after its wait or, without one, when it was due before.
JobState EngineCore::PutBack(Slot slot, const LeaseEnd& end, JobRecord* record) {
  const WallTime old_key_due = jobs_[slot].key_due();
  WallTime key_due = old_key_due;
  if (const std::optional<Millis> wait = WaitAfter(*record, end)) {
    MoveDue(record, DueAfter{*wait});
    key_due = KeyDue(record->due);
  }
  PutMovedRows(*record, old_key_due, key_due);
  return Settle(*record, key_due, slot);
}

// How long the job waits for its next attempt. None: it was handed out by its name, before its
// time, and is due later than that attempt would be. The try does not take back the due time that
// was promised (P2); a delay that its worker asks for does.
std::optional<Millis> EngineCore::WaitAfter(const JobRecord& record, const LeaseEnd& end) const {
  if (end.delay) {
    return end.delay;
  }
  const Millis wait =
      end.how == JobEvent::Kind::kLeaseExpired
          ? Millis(0)
          : BackoffOf(queues_[record.queue].settings.backoff, record.id, record.attempts);
  Now next = now_;
  next.boot += wait;
  next.wall += wait;
  return MomentOf(DueOf(record)).IsOver(next) ? std::optional(wait) : std::nullopt;
}

void EngineCore::NoteLeaseEnd(JobRecord* record, const LeaseEnd& end, std::string_view client) {
  // A worker that gives no error does not erase the error of the one before it.
  if (!end.error.empty()) {
    record->last_error = Utf8Front(end.error, limits::kLastErrorBytesMax);
  }
  record->priority = end.priority.value_or(record->priority);
  uint32_t& count = end.how == JobEvent::Kind::kLeaseExpired ? record->timeouts
                    : end.how == JobEvent::Kind::kBuried     ? record->buries
                                                             : record->releases;
  ++count;
  AddEvent(record, end.how, client, end.error);
}

void EngineCore::LeaseExpired(Slot slot) {
  ++counters_.lease_expired;
  const Status ended =
      EndLease(slot,
               {.how = JobEvent::Kind::kLeaseExpired, .error = "lease expired before an ack"},
               nullptr);
  if (ended.code() == StatusCode::kDataLoss) {
    Damaged(slot, ended);
  } else if (!ended.ok()) {
    Die(ended);
  } else {
    own_work_.Note();
  }
}

StatusOr<Body> EngineCore::Do(const Nack& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  if (command.delay) {
    DELAYD_RETURN_IF_ERROR(CheckDue(DueAfter{*command.delay}, now_.wall));
  }
  JobView view;
  DELAYD_RETURN_IF_ERROR(EndLease(slot,
                                  {.how = JobEvent::Kind::kNacked,
                                   .delay = command.delay,
                                   .error = command.error,
                                   .priority = command.priority,
                                   .counts_as_attempt = command.counts_as_attempt},
                                  &view));
  ++counters_.nacked;
  return BodyOf(std::move(view));
}

StatusOr<Body> EngineCore::Do(const Bury& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  JobView view;
  DELAYD_RETURN_IF_ERROR(EndLease(
      slot,
      {.how = JobEvent::Kind::kBuried, .error = command.error, .priority = command.priority},
      &view));
  ++counters_.buried;
  return BodyOf(std::move(view));
}

// A ready job dies because it was too late to be handed out.
void EngineCore::Expire(Slot slot, JobRecord record) {
  record.last_error = "expired: later than expires_after when it was to be handed out";
  AddEvent(&record, JobEvent::Kind::kDied, {}, record.last_error);
  MoveToDead(slot, record);
  own_work_.Note();
}

StatusOr<Body> EngineCore::Do(const Extend& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  DELAYD_RETURN_IF_ERROR(CheckLeaseTime(command.lease));
  LeaseInfo& info = LeaseOf(slot);
  info.EndAfter(command.lease.value_or(info.record->lease), now_);
  const bool moved = lease_wheel_.Move(lease_wheel_.HandleAt(info.timer), BootTick(info.expires));
  DELAYD_CHECK(moved);
  return BodyOf(ViewOf(*info.record, JobState::kLeased));
}

}  // namespace delayd::engine
