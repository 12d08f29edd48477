// Hand-out: leases, the requests that wait for one, and how a lease ends.
#include <algorithm>
#include <cmath>

#include "base/coding.h"
#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/timer_id.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::JobRecord;

namespace {

Status LeaseLost(JobId id) {
  return FailedPrecondition(
      "the lease of job " + std::to_string(ToInt(id)) +
          " is over: it ended, was given back, or belongs to an earlier run of the daemon; the "
          "job may be handed out again",
      "lease_lost");
}

Status ValidateLease(const std::optional<Millis>& lease) {
  if (lease && (lease->count() < 1 || lease->count() > limits::kLeaseMsMax)) {
    return InvalidArgument("lease of " + std::to_string(lease->count()) +
                               " ms is out of range; use 1 to " +
                               std::to_string(limits::kLeaseMsMax) + " ms",
                           "invalid_lease");
  }
  return OkStatus();
}

Status ValidateLeaseCommand(const Lease& command) {
  if (command.queues.empty()) {
    return InvalidArgument("no queue to lease from; name at least one", "invalid_queue");
  }
  for (const std::string& queue : command.queues) {
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(queue));
  }
  if (command.count < 1 || command.count > limits::kLeaseCountMax) {
    return InvalidArgument("count of " + std::to_string(command.count) +
                               " is out of range; use 1 to " +
                               std::to_string(limits::kLeaseCountMax),
                           "invalid_count");
  }
  if (command.wait.count() < 0 || command.wait.count() > limits::kLeaseWaitMsMax) {
    return InvalidArgument("wait of " + std::to_string(command.wait.count()) +
                               " ms is out of range; use 0 to " +
                               std::to_string(limits::kLeaseWaitMsMax) + " ms",
                           "invalid_wait");
  }
  return ValidateLease(command.lease);
}

}  // namespace

StatusOr<JobView> EngineCore::HandOutSlot(Slot slot, const std::optional<Millis>& lease) {
  const JobEntry& entry = jobs_[slot];
  const Located located{
      .state = JobState::kReady,
      .id = entry.id(),
      .slot = slot,
      .index = {
          .place = IndexRecord::Place::kTimers, .queue = entry.queue(), .at = entry.key_due()}};
  DELAYD_ASSIGN_OR_RETURN(JobRecord record, ReadRecord(located));
  DELAYD_RETURN_IF_ERROR(ReadPayload(&record));
  const Millis late = entry.on_boot_clock() ? now_.boot - record.boot_due : now_.wall - record.due;
  if (late < Millis(0)) {
    // The wall clock was set back after the job had fired: it waits again (P2).
    Unplace(slot);
    Place(slot, record);
    return NotFound("not due");
  }
  if (record.expires_after.count() > 0 && late > record.expires_after) {
    DELAYD_RETURN_IF_ERROR(MoveToDead(slot, "expired: nobody took it within expires_after"));
    return NotFound("expired");
  }
  Unplace(slot);
  LeaseInfo info;
  info.sequence = ++lease_sequence_;
  info.expires = now_.boot + lease.value_or(record.lease);
  jobs_[slot].set_phase(Phase::kLeased);
  jobs_[slot].handle = static_cast<uint64_t>(
      boot_wheel_.Add(static_cast<wheel::Tick>(ToMillis(info.expires)), TimerIdOfJob(slot)));
  ++queues_[record.queue].leased;
  ++fired_count_;
  ++counters_.handed_out;
  lateness_ms_.Observe(static_cast<uint64_t>(late.count()));

  JobView view = ViewOf(record, JobState::kLeased);
  view.payload = std::move(record.payload);
  view.lease_token = LeaseToken{.job = record.id, .epoch = epoch_, .sequence = info.sequence};
  view.lease_expires = now_.wall + (info.expires - now_.boot);
  view.lateness = late;
  record.payload.clear();
  info.record = std::make_unique<JobRecord>(std::move(record));
  leases_.insert_or_assign(slot, std::move(info));
  return view;
}

std::optional<JobView> EngineCore::HandOutBest(const Lease& command) {
  for (;;) {
    Queue* best = nullptr;
    for (const std::string& name : command.queues) {
      Queue* queue = queues_.Find(name);
      if (queue != nullptr && !queue->ready.empty() &&
          (best == nullptr || queue->ready.Top() < best->ready.Top())) {
        best = queue;
      }
    }
    if (best == nullptr) {
      return std::nullopt;
    }
    const Slot slot = best->ready.Top().slot;
    StatusOr<JobView> view = HandOutSlot(slot, command.lease);
    if (view.ok()) {
      return std::move(view).value();
    }
    if (view.status().code() == StatusCode::kNotFound) {
      continue;  // it expired and is among the dead now, or waits again
    }
    if (view.status().code() != StatusCode::kDataLoss) {
      Die(view.status());
      return std::nullopt;
    }
    Damaged(slot, view.status());
  }
}

Leased EngineCore::HandOut(const Lease& command) {
  Leased leased;
  size_t bytes = 0;
  while (leased.jobs.size() < command.count && bytes < limits::kListPayloadBytesMax) {
    std::optional<JobView> view = HandOutBest(command);
    if (!view) {
      break;
    }
    bytes += view->payload_bytes;
    leased.jobs.push_back(std::move(*view));
  }
  return leased;
}

void EngineCore::DoLease(RequestId request, Lease& command) {
  if (const Status valid = ValidateLeaseCommand(command); !valid.ok()) {
    Answer(request, valid);
    return;
  }
  // Who has waited longer comes first.
  for (const std::string& name : command.queues) {
    if (Queue* queue = queues_.Find(name)) {
      ServeQueue(*queue);
    }
  }
  pending_.BeginAccess();
  Leased leased = HandOut(command);
  if (!leased.jobs.empty() || command.wait.count() == 0) {
    Answer(request, Body(std::move(leased)));
    return;
  }
  const uint64_t id = next_waiter_++;
  const BootTime end = now_.boot + command.wait;
  for (const std::string& name : command.queues) {
    Queue* queue = queues_.Find(name);
    (queue != nullptr ? *queue : queues_.Create(name)).waiters.push_back(id);
  }
  Waiter waiter{.request = request, .command = std::move(command)};
  waiter.timeout = boot_wheel_.Add(static_cast<wheel::Tick>(ToMillis(end)), TimerIdOfWaiter(id));
  waiters_.emplace(id, std::move(waiter));
}

void EngineCore::ServeQueue(Queue& queue) {
  while (!queue.ready.empty() && !queue.waiters.empty() && fatal_.ok()) {
    const uint64_t id = queue.waiters.front();
    const auto found = waiters_.find(id);
    DELAYD_CHECK(found != waiters_.end());
    pending_.BeginAccess();
    Leased leased = HandOut(found->second.command);
    if (leased.jobs.empty()) {
      continue;  // what was ready had expired, waits again or is damaged; at last nothing is left
    }
    const RequestId request = found->second.request;
    RemoveWaiter(id);
    Answer(request, Body(std::move(leased)));
  }
}

void EngineCore::ServeAll() {
  // Serving may bury expired jobs but makes none ready, so the list does not grow meanwhile.
  for (const QueueId id : to_serve_) {
    Queue& queue = queues_[id];
    queue.to_serve = false;
    ServeQueue(queue);
  }
  to_serve_.clear();
}

void EngineCore::RemoveWaiter(uint64_t waiter_id) {
  const auto found = waiters_.find(waiter_id);
  DELAYD_CHECK(found != waiters_.end());
  for (const std::string& name : found->second.command.queues) {
    std::erase(queues_.Find(name)->waiters, waiter_id);
  }
  boot_wheel_.Cancel(found->second.timeout);
  waiters_.erase(found);
}

void EngineCore::WaitOver(uint64_t waiter_id) {
  const auto found = waiters_.find(waiter_id);
  DELAYD_CHECK(found != waiters_.end());
  const RequestId request = found->second.request;
  RemoveWaiter(waiter_id);
  pending_.BeginAccess();
  Answer(request, Body(Leased{}));
}

void EngineCore::DoAbandon(const Abandon& command) {
  for (const auto& [id, waiter] : waiters_) {
    if (waiter.request == command.waiting) {
      RemoveWaiter(id);
      return;
    }
  }
  // Chosen already, but the answer still waits for a commit: nobody has seen these hand-outs.
  for (Reply& reply : parked_) {
    if (reply.request == command.waiting && std::holds_alternative<Leased>(reply.body)) {
      for (const JobView& job : std::get<Leased>(reply.body).jobs) {
        TakeBack(*job.lease_token);
      }
      reply.body = Leased{};
    }
  }
}

void EngineCore::TakeBack(const LeaseToken& token) {
  const StatusOr<Slot> slot = FindLease(token);
  if (slot.ok()) {
    Unplace(*slot);
    MakeReady(*slot);
    --counters_.handed_out;
  }
}

StatusOr<Slot> EngineCore::FindLease(const LeaseToken& token) const {
  const std::optional<Slot> slot = jobs_.Find(token.job);
  if (!slot || token.epoch != epoch_ || jobs_[*slot].phase() != Phase::kLeased ||
      leases_.at(*slot).sequence != token.sequence) {
    return LeaseLost(token.job);
  }
  return *slot;
}

StatusOr<Body> EngineCore::Do(const Ack& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  const std::unique_ptr<JobRecord> record = std::move(leases_.at(slot).record);
  ++record->attempts;
  PutFinishedRows(
      *record,
      {.place = IndexRecord::Place::kTimers, .queue = record->queue, .at = jobs_[slot].key_due()},
      /*cancelled=*/false);
  Forget(slot);
  ++counters_.acked;
  return Body(OneJob{FinishedView(*record, /*cancelled=*/false)});
}

Millis EngineCore::Backoff(JobId id, uint32_t attempts) const {
  const double wait = static_cast<double>(options_.backoff_initial.count()) *
                      std::pow(options_.backoff_factor, static_cast<double>(attempts) - 1);
  const double capped = std::min(wait, static_cast<double>(options_.backoff_max.count()));
  // Jobs that failed together must not come back together. From id and attempt, so that a replay
  // gives the same.
  std::string seed;
  AppendU64(&seed, ToInt(id));
  AppendU32(&seed, attempts);
  const double jitter = static_cast<double>(Fingerprint(seed) % 1024) / 10240;
  return Millis(static_cast<int64_t>(capped * (1 - jitter)));
}

// The attempt is used up: back to the queue after `delay` (none: the backoff), or to the dead.
Status EngineCore::EndLease(Slot slot, std::optional<Millis> delay, std::string_view error) {
  const JobEntry& entry = jobs_[slot];
  const WallTime old_key_due = entry.key_due();
  DELAYD_ASSIGN_OR_RETURN(const Located located, LocateId(entry.id()));
  DELAYD_ASSIGN_OR_RETURN(JobRecord record, ReadRecord(located));
  ++record.attempts;
  record.last_error = error.substr(0, limits::kLastErrorBytesMax);
  if (record.max_attempts != 0 && record.attempts >= record.max_attempts) {
    PutDeadRows(record, old_key_due, now_.wall);
    Forget(slot);
    ++counters_.died;
    return OkStatus();
  }
  SetDue(&record, DueAfter{delay ? *delay : Backoff(record.id, record.attempts)});
  const WallTime key_due = KeyDue(record.due);
  PutMovedRows(record, old_key_due, key_due);
  Settle(record, key_due, slot);
  return OkStatus();
}

Status EngineCore::MoveToDead(Slot slot, std::string_view error) {
  DELAYD_ASSIGN_OR_RETURN(const Located located, LocateId(jobs_[slot].id()));
  DELAYD_ASSIGN_OR_RETURN(JobRecord record, ReadRecord(located));
  if (located.state == JobState::kLeased) {
    ++record.attempts;
  }
  record.last_error = error.substr(0, limits::kLastErrorBytesMax);
  PutDeadRows(record, located.index.at, now_.wall);
  Forget(slot);
  ++counters_.died;
  return OkStatus();
}

void EngineCore::LeaseExpired(Slot slot) {
  ++counters_.lease_expired;
  const Status ended = EndLease(slot, Millis(0), "lease expired before an ack");
  if (ended.code() == StatusCode::kDataLoss) {
    Damaged(slot, ended);
  } else if (!ended.ok()) {
    Die(ended);
  }
}

StatusOr<Body> EngineCore::Do(const Nack& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  if (command.delay) {
    DELAYD_RETURN_IF_ERROR(ValidateDue(DueAfter{*command.delay}));
  }
  DELAYD_RETURN_IF_ERROR(EndLease(slot, command.delay, command.error));
  ++counters_.nacked;
  return ShowAfterChange(command.token.job);
}

StatusOr<Body> EngineCore::Do(const Bury& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  DELAYD_RETURN_IF_ERROR(MoveToDead(slot, command.error));
  ++counters_.buried;
  return ShowAfterChange(command.token.job);
}

StatusOr<Body> EngineCore::Do(const Extend& command) {
  DELAYD_ASSIGN_OR_RETURN(const Slot slot, FindLease(command.token));
  DELAYD_RETURN_IF_ERROR(ValidateLease(command.lease));
  LeaseInfo& info = leases_.at(slot);
  info.expires = now_.boot + command.lease.value_or(info.record->lease);
  const bool moved = boot_wheel_.Move(static_cast<wheel::TimerHandle>(jobs_[slot].handle),
                                      static_cast<wheel::Tick>(ToMillis(info.expires)));
  DELAYD_CHECK(moved);
  return Body(OneJob{ViewOf(*info.record, JobState::kLeased)});
}

}  // namespace delayd::engine
