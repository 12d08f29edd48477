#include "cli/worker_slot.h"

#include <time.h>

#include <algorithm>

#include "base/utf8.h"
#include "cli/backoff.h"
#include "protocol/duration.h"
#include "protocol/problem.h"

namespace delayd::cli {
namespace {

constexpr Millis kLeaseRetryMax{5000};
// The pause between two tries to extend a lease: this fraction of it, at most kExtendRetryMax.
constexpr int kPartToRetry = 16;
constexpr Millis kExtendRetryMax{1000};
// How long the answer to a lease request takes on top of the wait that it asks for.
constexpr Millis kAnswerTime{1000};
// The fraction of a lease that may have passed when a handler begins.
constexpr int kPartBefore = 4;
// How soon a drain notices that another worker took the last job that a cap held back.
constexpr Millis kHeldBackPoll{1000};
// What is left of a lease for the nack when the handler takes all its grace to end.
constexpr Millis kFinishTime{5000};
// The grace of a handler when another worker may already have its job.
constexpr Millis kGraceWhenLost{500};
// The fraction of a lease that a handler gets to end in when the lease cannot be extended.
constexpr int kPartToEnd = 4;
constexpr int kFinishTriesWhenStopping = 3;
// How long a daemon may take to accept an outcome after the second stop.
constexpr Millis kFinishTimeWhenAbandoning{1000};

// Gives the job back without delay: it did nothing wrong.
Verdict GivenBack() {
  return {"nack", "the worker was stopped", Millis(0), false};
}

// A verdict without an action: there is no lease to act on.
Verdict Lost(const Status& refusal, const std::string& what) {
  const std::string lease =
      refusal.reason() == "lease_lost" ? "lease lost, " : "lease not extended, ";
  return {"", lease + what + " (" + std::string(refusal.message()) + ")"};
}

}  // namespace

Worker::Slot::Slot(Worker* worker, std::unique_ptr<Api> api, int wake_fd)
    : worker_(*worker),
      wake_fd_(wake_fd),
      options_(worker->options_),
      api_(std::move(api)),
      handler_(worker->options_.make_handler()) {
  // The second stop does not wait for a hanging daemon.
  api_->GiveUpWhen(worker->abandon_fd_);
}

void Worker::Slot::Run() {
  while (!worker_.stopping() && worker_.TakeTurn()) {
    const std::optional<JobView> job = LeaseOne();
    if (job.has_value() && Work(*job)) {
      continue;
    }
    worker_.GiveTurnBack();
    if (options_.drain && drained_) {
      return;
    }
  }
}

std::optional<JobView> Worker::Slot::LeaseOne() {
  protocol::LeaseRequest request;
  request.wait = !options_.drain ? options_.poll
                 : held_back_    ? std::min(options_.poll, kHeldBackPoll)
                                 : Millis(0);
  request.lease = options_.lease;
  request.client = options_.client;
  const BootTime asked = Now();
  StatusOr<std::vector<JobView>> jobs = api_->Lease(options_.queue, request);
  held_back_ = options_.drain && jobs.ok() && jobs->empty() && HoldsBack();
  drained_ = jobs.ok() && jobs->empty() && !held_back_;
  if (!jobs.ok()) {
    if (!protocol::MayPass(jobs.status())) {
      worker_.Fatal(jobs.status());
      return std::nullopt;
    }
    worker_.ReportOutage(jobs.status());
    worker_.Pause(Backoff(lease_tries_++, kLeaseRetryMax));
    return std::nullopt;
  }
  lease_tries_ = 0;
  worker_.report_.TellBack();
  if (!jobs->empty() && jobs->front().lease_token.has_value()) {
    lease_end_ = LeasedSince(jobs->front(), asked, request.wait) + LeaseOf(jobs->front());
    return std::move(jobs->front());
  }
  // An empty answer that comes at once (a paused queue, say) must not cause a busy loop.
  if (Now() - asked < request.wait / 2) {
    worker_.Pause(kBackoffFirst);
  }
  return std::nullopt;
}

// A paused queue does not count: it may stay paused. Nor do damaged jobs: nobody gets them. A
// daemon that goes away before it can tell is asked again, or a drain would end with due jobs left.
bool Worker::Slot::HoldsBack() {
  const StatusOr<protocol::QueueCounts> queue = api_->Queue(options_.queue);
  if (queue.ok() && queue->paused) {
    worker_.report_.TellPaused(*queue);
    return false;
  }
  if (!queue.ok()) {
    return protocol::MayPass(queue.status());
  }
  if (queue->sound() != 0) {
    return true;
  }
  if (queue->damaged > 0) {
    worker_.left_damaged_ = true;
    worker_.report_.TellDamaged(*queue);
  }
  return false;
}

// An answer may lie unread for long (the machine was suspended, say), and the daemon may have
// granted the lease at any moment of the wait. The expiry time by the daemon's clock tells when,
// unless that clock differs from ours.
BootTime Worker::Slot::LeasedSince(const JobView& job, BootTime asked, Millis wait) const {
  const delayd::Now now = worker_.context_->clock.Sample();
  const Millis lease = LeaseOf(job);
  const Millis age = lease - (job.lease_expires.value_or(WallTime()) - now.wall);
  const bool is_told = now.boot - asked <= wait + kAnswerTime && age <= lease / kPartBefore &&
                       -age <= lease / kPartBefore;
  return is_told ? std::max(asked, now.boot - std::max(age, Millis(0))) : asked;
}

bool Worker::Slot::Work(const JobView& job) {
  worker_.in_hand_.Take(job.id, wake_fd_);
  const BootTime started = Now();
  const Status kept = KeepLease(job);
  Verdict verdict = kept.ok()              ? Handle(job)
                    : worker_.abandoning() ? GivenBack()
                                           : Lost(kept, "handler not started");
  if (!verdict.counts_as_attempt && !verdict.delay.has_value()) {
    verdict.delay = options_.start_retry;
  }
  worker_.in_hand_.PutDown(job.id);
  const Delivery delivery =
      verdict.action.empty() ? Delivery{.words = verdict.error} : Finish(job, verdict);
  if (const Status written = worker_.report_.TellJob(job, verdict, delivery, Now() - started);
      !written.ok()) {
    worker_.Fatal(written);
  }
  // A worker that runs for ever waits for the deployment that brings its command back.
  if (verdict.for_good && (options_.drain || options_.count.has_value())) {
    worker_.Fatal(Internal(verdict.error, kCannotRun));
  } else if (!verdict.counts_as_attempt) {
    // What kept this job from being handled would keep the next one too: jobs would be leased and
    // given back as fast as the disk allows, each with a line in the log.
    worker_.Pause(options_.start_retry);
  }
  return kept.ok();
}

Verdict Worker::Slot::Handle(const JobView& job) {
  StatusOr<std::unique_ptr<JobRun>> run = handler_->Start(job);
  return run.ok() ? Watch(job, run->get())
                  : Verdict{"nack",
                            std::string(run.status().message()),
                            options_.start_retry,
                            run.status().reason() == kJobTooLarge,
                            run.status().reason() == kCannotRun};
}

Verdict Worker::Slot::Watch(const JobView& job, JobRun* run) {
  const Millis lease = LeaseOf(job);
  const Millis extend_every = std::max(Millis(1), lease / 2);
  const Millis retry_every = std::clamp(lease / kPartToRetry, Millis(1), kExtendRetryMax);
  const BootTime kill_at =
      options_.handler_timeout.has_value() ? Now() + *options_.handler_timeout : BootTime::max();
  BootTime extend_at = lease_end_ - lease + extend_every;
  Status extended;
  for (;;) {
    const JobRun::Event event = run->Wait(std::min(extend_at, kill_at), wake_fd_);
    if (event == JobRun::Event::kDone) {
      return run->verdict();
    }
    if (event == JobRun::Event::kWoken) {
      return EndWhenWoken(job, run);
    }
    if (Now() >= kill_at) {
      EndWithinLease(job, run);
      return {"nack",
              "handler timed out after " + protocol::FormatDuration(*options_.handler_timeout)};
    }
    // The handler must end within its lease, so the time that this takes is set aside.
    const BootTime stop_at = lease_end_ - std::min(options_.grace, lease / kPartToEnd);
    // A try without time left for its answer would extend a lease whose handler is being stopped.
    if (extended.ok() || Now() < stop_at) {
      // A hanging daemon must not keep us from looking at the clock.
      extended = Extend(job, options_.lease, std::min(stop_at, kill_at) - Now());
    }
    if (extended.ok()) {
      extend_at = Now() + extend_every;
      continue;
    }
    if (!protocol::MayPass(extended) || Now() >= stop_at) {
      return EndWithoutLease(extended, run);
    }
    // If the answer had only the rest of the handler's timeout, a missing one says nothing about
    // the daemon.
    if (kill_at > stop_at || extended.reason() != "timed_out") {
      worker_.ReportOutage(extended);
    }
    extend_at = Now() + 2 * retry_every <= stop_at ? Now() + retry_every : stop_at;
  }
}

Verdict Worker::Slot::EndWhenWoken(const JobView& job, JobRun* run) {
  if (!worker_.abandoning()) {
    run->End(kGraceWhenLost);
    return {"", "lease lost, handler stopped (the job was handed out again)"};
  }
  api_->GiveUpWhen(-1);
  EndWithinLease(job, run);
  return GivenBack();
}

// The daemon may give the job to another worker once the lease is over, or already has.
Verdict Worker::Slot::EndWithoutLease(const Status& refusal, JobRun* run) {
  run->End(TimeToEnd(refusal));
  return protocol::MayPass(refusal)
             ? Verdict{"", "lease ran out, handler stopped (" + refusal.message() + ")"}
             : Lost(refusal, "handler stopped");
}

// A handler that cleans up is still at work. If its lease were shorter than its grace, the job
// would be handed out meanwhile, and the nack refused.
void Worker::Slot::EndWithinLease(const JobView& job, JobRun* run) {
  const Millis wanted = options_.grace + kFinishTime;
  const Millis left = lease_end_ - Now();
  const Status kept =
      left >= wanted ? OkStatus() : Extend(job, wanted, std::min<Millis>(left, kExtendRetryMax));
  run->End(kept.ok() ? options_.grace : TimeToEnd(kept));
}

// The grace of a handler whose lease could not be extended: no more than is left of the lease, and
// hardly any when another worker may already have the job.
Millis Worker::Slot::TimeToEnd(const Status& refusal) const {
  const Millis left = refusal.reason() == "lease_lost" ? kGraceWhenLost : lease_end_ - Now();
  return std::clamp(left, Millis(0), options_.grace);
}

Status Worker::Slot::KeepLease(const JobView& job) {
  const Millis lease = LeaseOf(job);
  return lease_end_ - Now() >= lease - lease / kPartBefore
             ? OkStatus()
             : Extend(job, options_.lease, kTimeoutDefault);
}

Status Worker::Slot::Extend(const JobView& job, std::optional<Millis> lease, Millis at_most) {
  protocol::LeaseChange change;
  change.lease = lease;
  const BootTime asked = Now();
  const Status status =
      api_->ChangeLease(
              FormatLeaseToken(*job.lease_token), "extend", change, std::max(at_most, Millis(1)))
          .status();
  if (status.ok()) {
    lease_end_ = asked + lease.value_or(job.lease);
    worker_.report_.TellBack();
  }
  return status;
}

// Tries again and again while the daemon is away: the work is done and must not be forgotten. The
// lease fences, so a repeated ack does no harm.
Delivery Worker::Slot::Finish(const JobView& job, const Verdict& verdict) {
  protocol::LeaseChange change;
  change.error = verdict.error;
  change.delay = verdict.delay;
  change.counts_as_attempt = verdict.counts_as_attempt;
  const std::string token = FormatLeaseToken(*job.lease_token);
  const std::string said =
      verdict.action + (verdict.error.empty() ? "" : " (" + EscapeControls(verdict.error) + ")");
  const bool in_time = Now() < lease_end_;
  bool answer_lost = false;
  for (int tries = 0;; ++tries) {
    const bool hurries = worker_.abandoning();
    if (hurries) {
      api_->GiveUpWhen(-1);
    }
    const Millis at_most = hurries ? kFinishTimeWhenAbandoning : Millis::max();
    const Status status = api_->ChangeLease(token, verdict.action, change, at_most).status();
    if (status.ok()) {
      worker_.report_.TellBack();
      return {.told = true, .words = said};
    }
    answer_lost = answer_lost || status.code() == StatusCode::kUnknown;
    if (!protocol::MayPass(status)) {
      // If the lease was already over, whoever has the job now decides what becomes of it. And a
      // nack only asks for the job to be handed out again, which has happened.
      const bool in_vain = status.reason() != "lease_lost" || (in_time && verdict.action != "nack");
      return Refused(status, said, in_vain, answer_lost);
    }
    worker_.ReportOutage(status);
    const bool hangs = hurries && status.reason() == "timed_out";
    if (worker_.stopping() && (hangs || tries >= kFinishTriesWhenStopping)) {
      worker_.CountUndelivered();
      return {.words = "not delivered " + said + " (" + status.message() + ")"};
    }
    RestBeforeRetry(tries);
  }
}

// A line with ": ack" means that the daemon accepted the ack, so these lines are worded otherwise.
Delivery Worker::Slot::Refused(const Status& status,
                               const std::string& said,
                               bool in_vain,
                               bool answer_lost) {
  if (in_vain) {
    worker_.CountUndelivered();
  }
  return {.words = answer_lost
                       ? "unknown, the answer to " + said + " was lost (" + status.message() + ")"
                       : "refused " + said + " (" + status.message() + ")"};
}

void Worker::Slot::RestBeforeRetry(int tries) {
  if (!worker_.stopping()) {
    worker_.Pause(Backoff(tries, kLeaseRetryMax));
    return;
  }
  const timespec nap{.tv_sec = 0, .tv_nsec = 200'000'000};
  nanosleep(&nap, nullptr);
}

}  // namespace delayd::cli
