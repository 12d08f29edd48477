// With little memory: which of the ready jobs are handed out is learned, and checked.
#include <algorithm>

#include "base/check.h"
#include "base/limits.h"
#include "tests/simulation/compare.h"
#include "tests/simulation/model.h"

namespace delayd::simulation {

using engine::RequestId;

void Model::OpenLease(RequestId request, const engine::Lease& command) {
  const uint64_t id = next_waiter_++;
  for (const std::string& queue : command.queues) {
    QueueOf(queue).waiters.push_back(id);
  }
  waiters_[id] = {.request = request,
                  .command = command,
                  .end = now_.boot + command.wait,
                  .timer_rank = next_rank_++,
                  .settled = settled_};
}

bool Model::IsOpenLease(RequestId request) const {
  return std::ranges::any_of(waiters_,
                             [&](const auto& waiter) { return waiter.second.request == request; });
}

bool Model::HasDueJob(const std::string& queue) const {
  return std::ranges::any_of(jobs_, [&](const auto& job) {
    return job.second.spec->queue == queue && job.second.state == JobState::kReady;
  });
}

// One that waits again waits a rounding longer, unless it went from memory since and came back. And
// one that is ready while the clock is set back to that rounding waits for its end, if it went.
bool Model::MayBeReady(const ModelJob& job, const Now& now) {
  if (job.state == JobState::kReady) {
    return job.due_kind == DueKind::kRelative && !job.on_boot_clock &&
           job.due + Millis(1) > now.wall;
  }
  return job.state == JobState::kScheduled && job.waits_again && Lateness(job, now) >= Millis(0);
}

void Model::LearnLeases(const engine::Leased& actual, engine::Leased* expected) {
  for (size_t i = 0; i < std::min(actual.jobs.size(), expected->jobs.size()); ++i) {
    LeaseToken& token = *expected->jobs[i].lease_token;
    const LeaseToken is = actual.jobs[i].lease_token.value_or(token);
    const bool is_new = told_leases_.insert(is.sequence).second;
    if (!is_new || is.job != token.job || is.epoch != token.epoch ||
        is.sequence > lease_sequence_) {
      continue;
    }
    if (ModelJob* job = Holding(token)) {
      job->lease_sequence = is.sequence;
    }
    token.sequence = is.sequence;
  }
}

bool Model::AnyMayBeReady(const Now& now) const {
  return Follows() &&
         std::ranges::any_of(jobs_, [&](const auto& job) { return MayBeReady(job.second, now); });
}

// Whether a due job of the queue should be in memory. Not in the millisecond of the rounding, to
// which the wall clock may have been set back: one that comes from disk waits for the next one.
bool Model::IsOwed(const std::string& queue) const {
  return std::ranges::any_of(jobs_, [&](const auto& entry) {
    const ModelJob& job = entry.second;
    return job.spec->queue == queue && job.state == JobState::kReady &&
           (job.on_boot_clock || job.due + Millis(1) <= now_.wall);
  });
}

bool Model::Starves(const std::string& queue) {
  return IsOwed(queue) && MayHandOut(queue);
}

void Model::OpenPeek(RequestId request, const std::string& queue) {
  PeekCheck& check = open_peeks_[request];
  for (const ModelJob* job : InState(queue, JobState::kReady)) {
    JobView& view = check.ready[job->id] = ViewOf(*job, job->state);
    view.payload = job->spec->payload;
    view.history = job->events;
  }
  check.is_owed = settled_ && IsOwed(queue);
}

std::string Model::FollowPeek(const engine::Reply& reply) {
  const PeekCheck check = std::move(open_peeks_.extract(reply.request).mapped());
  const auto* view = std::get_if<Indirect<JobView>>(&reply.body);
  if (view == nullptr) {
    return check.is_owed || reply.status.code() != StatusCode::kNotFound
               ? "there is a ready job, and the answer is " + reply.status.message()
               : std::string();
  }
  const auto found = check.ready.find((*view)->id);
  return found == check.ready.end() ? "shown as ready, and is not: " + Describe(**view)
                                    : Difference(found->second, **view);
}

std::string Model::FollowOne(const ModelWaiter& waiter, const JobView& view) {
  const engine::Lease& command = waiter.command;
  const std::string whose = "job " + std::to_string(ToInt(view.id));
  const auto found = jobs_.find(view.id);
  if (found == jobs_.end()) {
    return "P4, P5: " + whose + " is handed out and is known no longer";
  }
  ModelJob& job = found->second;
  const std::string& queue = job.spec->queue;
  if (job.state == JobState::kScheduled && MayBeReady(job, now_)) {
    MakeReady(&job);
  }
  if (job.state != JobState::kReady) {
    return "P2, P5: " + whose + " is handed out and is " + std::string(JobStateName(job.state));
  }
  if (std::ranges::find(command.queues, queue) == command.queues.end() || !MayHandOut(queue)) {
    return whose + " is handed out from queue " + queue + ", which may not be";
  }
  // Between a start and the first turn what is new may overtake what is not loaded yet. And where
  // the answer to a hand-out before this one waits for its commit, that one is still to be seen.
  // One that comes back for want of memory may stand behind others of its millisecond.
  const uint64_t sequence = view.lease_token->sequence;
  for (uint64_t passed = lease_sequence_ + 1; passed < sequence; ++passed) {
    unseen_hand_outs_.insert(passed);
  }
  unseen_hand_outs_.erase(sequence);
  const bool is_next = unseen_hand_outs_.empty() || *unseen_hand_outs_.begin() > sequence;
  // One whose lease ends in this turn is in memory, and due; another that fell due in the same turn
  // may still be on disk.
  const bool is_back = job.place == now_.wall && !job.events.empty() &&
                       job.events.back().kind == JobEvent::Kind::kLeaseExpired;
  for (const auto& [id, other] : jobs_) {
    const bool is_before =
        other.place < job.place || (other.place == job.place && id < job.id && other.attempts == 0);
    if (waiter.settled && is_next && !is_back && other.state == JobState::kReady &&
        other.spec->queue == queue && other.priority <= job.priority && is_before) {
      return "job " + std::to_string(ToInt(id)) + " is before " + whose + " in queue " + queue;
    }
  }
  const Millis late = job.on_boot_clock ? now_.boot - job.boot_due : now_.wall - job.due;
  if (late < Millis(0) || (job.spec->expires_after && late > *job.spec->expires_after)) {
    return "P2: " + whose + " is handed out " + std::to_string(late.count()) + " ms late";
  }
  QueueOf(queue).bucket.Take(now_.boot);
  // Answers may overtake each other, and the numbers of the leases with them.
  const uint64_t last = lease_sequence_;
  lease_sequence_ = sequence - 1;
  const JobView expected = Grant(&job, command.lease, command.client, late);
  lease_sequence_ = std::max(last, lease_sequence_);
  return Difference(expected, view);
}

std::string Model::Follow(RequestId request, const engine::Leased& leased) {
  const auto found = std::ranges::find_if(
      waiters_, [&](const auto& waiter) { return waiter.second.request == request; });
  DELAYD_CHECK(found != waiters_.end());
  const ModelWaiter waiter = found->second;
  RemoveWaiter(found->first);
  if (leased.jobs.size() > waiter.command.count) {
    return "more jobs are handed out than were asked for";
  }
  if (leased.jobs.empty() && waiter.end > now_.boot) {
    return "a wait ends before its time";
  }
  // A worker that does not wait is kept while due jobs are on their way from disk, but not for
  // ever.
  const bool is_none_wrong = waiter.command.wait == Millis(0) && waiter.settled &&
                             now_.boot < waiter.end + Millis(limits::kPassOverWaitMs);
  if (leased.jobs.empty() && is_none_wrong) {
    for (const std::string& queue : waiter.command.queues) {
      // Else its job may be in an answer that waits for the commit of that job.
      const bool is_last = std::ranges::none_of(waiters_, [&](const auto& other) {
        return std::ranges::find(other.second.command.queues, queue) !=
               other.second.command.queues.end();
      });
      if (is_last && Starves(queue)) {
        return "P3: queue " + queue + " has a due job, and nothing is handed out";
      }
    }
  }
  for (const JobView& view : leased.jobs) {
    if (std::string wrong = FollowOne(waiter, view); !wrong.empty()) {
      return wrong;
    }
  }
  return {};
}

void Model::FollowDeath(JobId id) {
  const auto found = jobs_.find(id);
  if (!Follows() || found == jobs_.end() || found->second.state != JobState::kReady) {
    return;
  }
  ModelJob& job = found->second;
  if (!job.spec->expires_after || Lateness(job, now_) <= *job.spec->expires_after) {
    return;  // it was dead before, and is ready again in the same batch; or the rows tell
  }
  Expire(&job);
}

std::string Model::Settled() {
  settled_ = true;
  unseen_hand_outs_.clear();  // all answers are here; what is not among them was taken back
  for (const auto& [id, waiter] : waiters_) {
    if (Follows() && waiter.end <= now_.boot) {
      return "a lease is not answered, and its wait is over";
    }
    for (const std::string& queue : waiter.command.queues) {
      if (Follows() && Starves(queue)) {
        return "P3: queue " + queue + " has a due job, and a worker waits for it";
      }
    }
  }
  return {};
}

}  // namespace delayd::simulation
