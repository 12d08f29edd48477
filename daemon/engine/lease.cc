// Hand-out: leases, and the requests that wait for one.
#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/lease_checks.h"
#include "daemon/engine/timer_id.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::IndexRecord;
using storage::JobRecord;

namespace {

// Most leases ask for fewer.
constexpr uint32_t kViewsReserved = 100;

// Both have ready jobs.
bool ComesLater(const Queue* a, const Queue* b) {
  return b->ready.Top() < a->ready.Top();
}

}  // namespace

// Negative: the wall clock was set back after the job had fired.
Millis EngineCore::LatenessOf(const JobEntry& entry, const JobRecord& record) const {
  if (!entry.on_boot_clock()) {
    return now_.wall - record.due;
  }
  // Nothing fires early on the boot clock: below zero is only what boot_due was rounded up by.
  return std::max(now_.boot - record.boot_due, Millis(0));
}

Status EngineCore::HandOutSlot(Slot slot, const WaitingLease& asked, std::vector<JobView>* out) {
  const JobEntry& entry = jobs_[slot];
  if (sweep_ && IsLeftBehind(entry)) {
    Forget(slot);
    return NotFound("on disk");
  }
  const Located located{
      .state = JobState::kReady,
      .id = entry.id(),
      .slot = slot,
      .index = {
          .place = IndexRecord::Place::kTimers, .queue = entry.queue(), .at = entry.key_due()}};
  StatusOr<JobRecord> read = ReadRecord(located, queues_[entry.queue()].ready.size());
  DELAYD_RETURN_IF_ERROR(read.status());
  JobRecord& record = *read;
  const Millis late = LatenessOf(entry, record);
  if (late < Millis(0)) {
    // The wall clock was set back after the job had fired: it waits again (P2).
    Unplace(slot);
    Place(slot, record);
    return NotFound("not due");
  }
  if (record.expires_after.count() > 0 && late > record.expires_after) {
    Expire(slot, std::move(record));
    return NotFound("expired");
  }
  DELAYD_RETURN_IF_ERROR(ReadPayload(&record));
  Unplace(slot);
  queues_[record.queue].bucket.Take(now_.boot);
  out->push_back(Grant(slot, std::move(record), late, asked.lease, asked.client));
  return OkStatus();
}

JobView EngineCore::Grant(Slot slot,
                          JobRecord&& record,
                          Millis late,
                          const std::optional<Millis>& lease,
                          const std::string& client) {
  std::string payload = std::exchange(record.payload, {});
  jobs_[slot].set_phase(Phase::kLeased);
  jobs_[slot].handle = leases_.Add(std::move(record));
  LeaseInfo& info = LeaseOf(slot);
  const JobRecord& held = *info.record;
  info.sequence = ++lease_sequence_;
  info.EndAfter(lease.value_or(held.lease), now_);
  info.client = client;
  info.timer = wheel::IndexOf(lease_wheel_.Add(BootTick(info.expires), TimerIdOfJob(slot)));
  Queue& queue = queues_[held.queue];
  ++queue.leased;
  ++queue.handed_out;
  ++fired_count_;
  ++counters_.handed_out;
  lateness_ms_.Observe(static_cast<uint64_t>(late.count()));

  JobView view = ViewOfRecord(held, JobState::kLeased);
  AddLease(info, &view);
  view.payload = std::move(payload);
  view.lease_token = LeaseToken{.job = held.id, .epoch = epoch_, .sequence = info.sequence};
  view.lateness = late;
  return view;
}

bool EngineCore::HasReadyJob(const Queue& queue) const {
  return !queue.ready.empty() && MayHandOut(queue);
}

// Called once a request: nothing becomes ready while jobs are handed out, and a request may name
// thousands of queues and want a thousand jobs.
void EngineCore::FindOffers(const WaitingLease& asked) {
  offers_.clear();
  for (Queue* const queue : asked.queues) {
    if (!queue->is_offered && HasReadyJob(*queue)) {
      queue->is_offered = true;  // it may be named twice
      offers_.push_back(queue);
    }
  }
  for (Queue* const queue : offers_) {
    queue->is_offered = false;
  }
  std::ranges::make_heap(offers_, ComesLater);
}

bool EngineCore::HandOutBest(const WaitingLease& asked, std::vector<JobView>* out) {
  while (!offers_.empty()) {
    std::ranges::pop_heap(offers_, ComesLater);
    const Queue& best = *offers_.back();
    if (out->empty()) {
      out->reserve(std::min(asked.count, kViewsReserved));
    }
    const Slot slot = best.ready.Top().slot;
    const Status handed_out = HandOutSlot(slot, asked, out);
    if (handed_out.code() == StatusCode::kDataLoss) {
      Damaged(slot, handed_out);
    } else if (!handed_out.ok() && handed_out.code() != StatusCode::kNotFound) {
      Die(handed_out);
      return false;
    }
    if (HasReadyJob(best)) {
      std::ranges::push_heap(offers_, ComesLater);
    } else {
      offers_.pop_back();
    }
    if (handed_out.ok()) {
      return true;
    }
    // The job had expired and is dead now, or it waits again, is on disk or damaged. The same may
    // be true of a million jobs behind it.
    if (++passed_over_ >= limits::kPassOverMax || own_work_.is_full()) {
      cut_short_ = true;
      return false;
    }
  }
  return false;
}

Leased EngineCore::HandOut(const WaitingLease& asked) {
  Leased leased;
  cut_short_ = false;
  FindOffers(asked);
  size_t bytes = 0;
  while (leased.jobs.size() < asked.count && bytes < limits::kLeaseBytesMax &&
         HandOutBest(asked, &leased.jobs)) {
    bytes += leased.jobs.back().payload_bytes;
  }
  served_bytes_ += bytes + leased.jobs.size() * limits::kServeBytesOfJob +
                   asked.queues.size() * limits::kServeBytesOfName;
  return leased;
}

void EngineCore::DoLease(RequestId request, Lease& command) {
  if (const Status valid = CheckLease(command); !valid.ok()) {
    Answer(request, valid);
    return;
  }
  LookUp(&command);
  // Requests that have waited longer are served first. If one still waits although a job is ready,
  // this turn could not look at all of them.
  bool more = false;
  const auto has_ready_job = [this](const Queue* queue) { return HasReadyJob(*queue); };
  for (Queue* const queue : asked_.queues) {
    ServeQueue(*queue);
    more = more || (!queue->waiters.empty() && has_ready_job(queue));
  }
  pending_.BeginAccess();
  Leased leased;
  if (!more) {
    leased = HandOut(asked_);
    more =
        leased.jobs.empty() && ((cut_short_ && std::ranges::any_of(asked_.queues, has_ready_job)) ||
                                !IsLookedThrough(asked_));
  }
  if (!leased.jobs.empty() || (command.wait.count() == 0 && !more)) {
    Answer(request, Body(std::move(leased)));
    return;
  }
  Wait(request, command, more);
}

void EngineCore::LookUp(Lease* command) {
  asked_.queues.clear();
  for (const std::string& name : command->queues) {
    if (Queue* const queue = queues_.Find(name)) {
      asked_.queues.push_back(queue);
    }
  }
  asked_.count = command->count;
  asked_.lease = command->lease;
  asked_.client = std::move(command->client);
}

// The request in asked_ waits. `more`: its queues may have jobs that were not looked at.
void EngineCore::Wait(RequestId request, const Lease& command, bool more) {
  DELAYD_CHECK(request < kRateBit);
  WaitingLease waiter{.queues = {},
                      .count = asked_.count,
                      .lease = asked_.lease,
                      .client = std::move(asked_.client),
                      .end = now_.boot + command.wait};
  waiter.queues.reserve(command.queues.size());
  for (const std::string& name : command.queues) {
    Queue& queue = FindOrCreateQueue(name);
    waiter.queues.push_back(&queue);
    queue.waiters.Join(request);
    WatchRate(queue);
    if (more && !queue.ready.empty()) {
      queue.cut_short = true;
      ServeSoon(queue);
    }
  }
  const Millis kept(more ? limits::kPassOverWaitMs : 0);
  if (command.wait < kept) {
    kept_.push_back(request);
  }
  const BootTime at = std::max(waiter.end, now_.boot + kept);
  waiter.timeout = boot_wheel_.Add(BootTick(at), TimerIdOfWaiter(request));
  waiters_.emplace(request, std::move(waiter));
}

// The request that has waited longest for the queue. If it also waits for another queue that has a
// job, and a third request has waited longer for that one, the third is served first, and so on.
RequestId EngineCore::NextToServe(const Queue& queue) const {
  const auto first_before = [this](RequestId request) {
    const WaitingLease& waiter = waiters_.at(request);
    if (waiter.queues.size() > 1) {
      for (const Queue* const other : waiter.queues) {
        if (other->waiters.front() != request && HasReadyJob(*other)) {
          return other->waiters.front();
        }
      }
    }
    return request;
  };
  // Each of them has waited longer than the one before, so this comes to an end.
  RequestId request = queue.waiters.front();
  for (RequestId before = first_before(request); before != request;
       before = first_before(request)) {
    request = before;
  }
  return request;
}

void EngineCore::ServeQueue(Queue& queue) {
  while (!queue.waiters.empty() && HasReadyJob(queue) && fatal_.ok()) {
    if (served_bytes_ >= limits::kServeBytesMax) {
      queue.cut_short = true;
      ServeSoon(queue);
      break;
    }
    const RequestId request = NextToServe(queue);
    const auto found = waiters_.find(request);
    DELAYD_CHECK(found != waiters_.end());
    pending_.BeginAccess();
    Leased leased = HandOut(found->second);
    if (leased.jobs.empty() && cut_short_) {
      // The queues of the request too: it need not be waiting for this one.
      for (Queue* const own : found->second.queues) {
        own->cut_short = true;
        ServeSoon(*own);
      }
      queue.cut_short = true;
      ServeSoon(queue);
      break;
    }
    if (leased.jobs.empty()) {
      continue;  // the ready jobs had expired, wait again or are damaged; in the end none is left
    }
    RemoveWaiter(request);
    Answer(request, Body(std::move(leased)));
  }
  WatchRate(queue);
}

// Whether it is certain that none of the request's queues has a job for it. There may be one behind
// jobs that cannot be handed out; or on disk, where a queue has none in memory and the frontier has
// fallen behind.
bool EngineCore::IsLookedThrough(const WaitingLease& asked) const {
  const auto may_have_more = [this](const Queue& queue) {
    const WallTime first_on_disk = queue.frontier ? queue.frontier->first : far_begins_;
    return first_on_disk <= advanced_key_ && queue.ready.empty() && MayHandOut(queue) &&
           queue.has_more_on_disk();
  };
  return std::ranges::none_of(
      asked.queues, [&](const Queue* queue) { return queue->cut_short || may_have_more(*queue); });
}

// Requests that are kept beyond their wait are answered as soon as all their queues have been
// looked through; those whose wait is not over yet go on waiting for the rest of it.
void EngineCore::AnswerKept() {
  std::erase_if(kept_, [this](RequestId request) {
    const auto found = waiters_.find(request);
    if (found == waiters_.end()) {
      return true;
    }
    if (!IsLookedThrough(found->second)) {
      return false;
    }
    if (found->second.end <= now_.boot) {
      WaitOver(request);
    } else {
      boot_wheel_.Move(found->second.timeout, BootTick(found->second.end));
    }
    return true;
  });
}

void EngineCore::ServeAll() {
  passed_over_ = 0;
  served_bytes_ = 0;
  // A queue that cannot be looked through in one turn comes again, behind these.
  const size_t count = to_serve_.size();
  for (size_t i = 0; i < count; ++i) {
    Queue& queue = queues_[to_serve_[i]];
    queue.to_serve = queue.cut_short = false;
    ServeQueue(queue);
    queues_.RemoveIfUnused(queue);
  }
  to_serve_.erase(to_serve_.begin(), to_serve_.begin() + static_cast<std::ptrdiff_t>(count));
  if (served_bytes_ >= limits::kServeBytesMax && !to_serve_.empty()) {
    // The queue that took most of the turn is the last of them next time.
    std::rotate(to_serve_.begin(), to_serve_.begin() + 1, to_serve_.end());
  }
  AnswerKept();
}

void EngineCore::RemoveWaiter(RequestId request) {
  const auto found = waiters_.find(request);
  DELAYD_CHECK(found != waiters_.end());
  const WaitingLease gone = std::move(found->second);
  waiters_.erase(found);
  left_names_ += gone.queues.size();
  for (Queue* const queue : gone.queues) {
    queue->waiters.Left([this](RequestId other) { return waiters_.contains(other); });
    queues_.RemoveIfUnused(*queue);
  }
  boot_wheel_.Cancel(gone.timeout);
}

void EngineCore::WaitOver(RequestId request) {
  RemoveWaiter(request);
  pending_.BeginAccess();
  Answer(request, Body(Leased{}));
}

void EngineCore::DoAbandon(const Abandon& command) {
  if (waiters_.contains(command.waiting)) {
    RemoveWaiter(command.waiting);
    return;
  }
  // Its jobs have been chosen, but the answer is still here: nobody has seen these hand-outs.
  const auto hands_out = [](const Reply& reply) {
    return std::holds_alternative<Leased>(reply.body);
  };
  if (Reply* const parked = parked_.Find(command.waiting, hands_out)) {
    TakeBack(parked);
  }
  // The ready replies are few: they are fetched after every few commands.
  for (Reply& reply : ready_replies_) {
    if (reply.request == command.waiting && hands_out(reply)) {
      TakeBack(&reply);
    }
  }
}

void EngineCore::DoEndWait(const EndWait& command) {
  const auto found = waiters_.find(command.waiting);
  if (found == waiters_.end()) {
    return;
  }
  WaitingLease& waiter = found->second;
  const BootTime end = std::min(waiter.end, now_.boot);
  const BootTime kept_until = end + Millis(limits::kPassOverWaitMs);
  const bool is_kept = waiter.end <= now_.boot && boot_wheel_.Due(waiter.timeout).has_value();
  if (IsLookedThrough(waiter) || kept_until <= now_.boot) {
    WaitOver(command.waiting);
  } else if (!is_kept) {
    waiter.end = end;
    kept_.push_back(command.waiting);
    boot_wheel_.Cancel(waiter.timeout);  // unless it has fired
    waiter.timeout = boot_wheel_.Add(BootTick(kept_until), TimerIdOfWaiter(command.waiting));
  }
}

// The jobs of an answer that nobody will get are ready again.
void EngineCore::TakeBack(Reply* reply) {
  for (const JobView& job : std::get<Leased>(reply->body).jobs) {
    if (const StatusOr<Slot> slot = FindLease(*job.lease_token); slot.ok()) {
      ReturnUntouched(*slot);  // perhaps out of memory
    }
  }
  reply->body = Leased{};
}

}  // namespace delayd::engine
