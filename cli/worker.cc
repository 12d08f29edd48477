#include "cli/worker.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/utf8.h"
#include "cli/backoff.h"
#include "cli/human_time.h"
#include "protocol/client.h"
#include "protocol/duration.h"
#include "protocol/json_writer.h"
#include "protocol/problem.h"

#include <sys/eventfd.h>

namespace delayd::cli {
namespace {

constexpr Millis kLeaseRetryMax{5000};
// Between two tries to extend a lease: such a part of it, and no more than this.
constexpr int kPartToRetry = 16;
constexpr Millis kExtendRetryMax{1000};
// What the answer to a lease request takes beside the wait that it asks for.
constexpr Millis kAnswerTime{1000};
// The part of a lease that may be over when a handler begins.
constexpr int kPartBefore = 4;
// A drain ends so long after another worker took the last job that a cap held back.
constexpr Millis kHeldBackPoll{1000};
// What a lease has left for its nack when a handler took all its grace to end.
constexpr Millis kFinishTime{5000};
// What a handler gets to end in when another worker may be at its job.
constexpr Millis kGraceWhenLost{500};
// The part of a lease that a handler has to end in when the lease cannot be extended.
constexpr int kPartToEnd = 4;
constexpr int kFinishTriesWhenStopping = 3;
// What a daemon has to take an outcome in when somebody waits for the end of all this.
constexpr Millis kFinishTimeWhenAbandoning{1000};

// Whether a line can be written to `fd`; waits for that until `wake_fd` can be read, if it is
// given. A stopped terminal, or a pager, takes nothing: who waited for it could neither keep a
// lease nor be stopped.
bool TakesLine(int fd, std::optional<int> wake_fd = std::nullopt) {
  std::array<pollfd, 2> entries{{{fd, POLLOUT, 0}, {wake_fd.value_or(-1), POLLIN, 0}}};
  while (poll(entries.data(), entries.size(), wake_fd.has_value() ? -1 : 0) < 0) {
  }
  return entries[0].revents != 0;
}

}  // namespace

// One thread's share: its connection and the job it has in hand.
class Worker::Slot {
 public:
  Slot(Worker* worker, std::unique_ptr<Api> api, int wake_fd)
      : worker_(*worker),
        wake_fd_(wake_fd),
        options_(worker->options_),
        api_(std::move(api)),
        handler_(worker->options_.make_handler()) {
    // The second stop does not wait for a daemon that hangs.
    api_->GiveUpWhen(worker->abandon_fd_);
  }

  void Run() {
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

 private:
  BootTime Now() const { return worker_.context_->clock.Sample().boot; }

  Millis LeaseOf(const JobView& job) const { return options_.lease.value_or(job.lease); }

  std::optional<JobView> LeaseOne() {
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
    worker_.ReportBack();
    if (!jobs->empty() && jobs->front().lease_token.has_value()) {
      lease_end_ = LeasedSince(jobs->front(), asked, request.wait) + LeaseOf(jobs->front());
      return std::move(jobs->front());
    }
    // An answer that came at once (a paused queue, say) must not become a busy loop.
    if (Now() - asked < request.wait / 2) {
      worker_.Pause(kBackoffFirst);
    }
    return std::nullopt;
  }

  // When its lease began, at the earliest. An answer may lie unread for long, in a machine that was
  // suspended, say, and the daemon may have held it back for all of the wait: its clock tells
  // which, unless that differs from ours.
  BootTime LeasedSince(const JobView& job, BootTime asked, Millis wait) const {
    const delayd::Now now = worker_.context_->clock.Sample();
    const Millis lease = LeaseOf(job);
    const Millis age = lease - (job.lease_expires.value_or(WallTime()) - now.wall);
    const bool is_told = now.boot - asked <= wait + kAnswerTime && age <= lease / kPartBefore &&
                         -age <= lease / kPartBefore;
    return is_told ? std::max(asked, now.boot - std::max(age, Millis(0))) : asked;
  }

  // Not OK: its lease may be over.
  Status KeepLease(const JobView& job) {
    const Millis lease = LeaseOf(job);
    return lease_end_ - Now() >= lease - lease / kPartBefore
               ? OkStatus()
               : Extend(job, options_.lease, kTimeoutDefault);
  }

  // Whether the queue has ready jobs that its caps let nobody have yet. One that is paused stays
  // so.
  bool HoldsBack() {
    const StatusOr<protocol::QueueCounts> queue = api_->Queue(options_.queue);
    return queue.ok() && queue->ready > 0 && !queue->paused;
  }

  // Whether it was this worker's job still.
  bool Work(const JobView& job) {
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
    bool told = false;
    const std::string outcome =
        verdict.action.empty() ? verdict.error : Finish(job, verdict, &told);
    Tell(job, verdict, outcome, told, Now() - started);
    // Who serves for ever waits for the deployment that brings its command back.
    if (verdict.for_good && (options_.drain || options_.count.has_value())) {
      worker_.Fatal(Internal(verdict.error, kCannotRun));
    } else if (!verdict.counts_as_attempt) {
      // What kept this one from being handled keeps the next one: jobs would be taken and given
      // back as fast as they are written, each with a line.
      worker_.Pause(options_.start_retry);
    }
    return kept.ok();
  }

  Verdict Handle(const JobView& job) {
    StatusOr<std::unique_ptr<JobRun>> run = handler_->Start(job);
    return run.ok() ? Watch(job, run->get())
                    : Verdict{"nack",
                              std::string(run.status().message()),
                              options_.start_retry,
                              run.status().reason() == kJobTooLarge,
                              run.status().reason() == kCannotRun};
  }

  // Back at once: the job did nothing wrong.
  static Verdict GivenBack() { return {"nack", "the worker was stopped", Millis(0), false}; }

  // Without an action.
  static Verdict Lost(const Status& refusal, const std::string& what) {
    const std::string lease =
        refusal.reason() == "lease_lost" ? "lease lost, " : "lease not extended, ";
    return {"", lease + what + " (" + std::string(refusal.message()) + ")"};
  }

  void Tell(const JobView& job,
            const Verdict& verdict,
            const std::string& outcome,
            bool told,
            Millis took) {
    if (worker_.context_->globals.output != OutputFormat::kTable) {
      PrintJson(job, verdict, told ? verdict.error : outcome, told, took);
      return;
    }
    if (!TakesLine(STDERR_FILENO, worker_.abandon_fd_)) {
      return;
    }
    worker_.context_->console.Say("job " + std::to_string(ToInt(job.id)) +
                                  (job.key.empty() ? "" : " " + EscapeControls(job.key)) +
                                  " attempt " + std::to_string(job.attempt) + ": " + outcome +
                                  " after " + RoughDuration(took) + ", handed out " +
                                  RoughDuration(job.lateness.value_or(Millis(0))) + " late");
  }

  void PrintJson(const JobView& job,
                 const Verdict& verdict,
                 const std::string& error,
                 bool told,
                 Millis took) {
    protocol::JsonObjectWriter writer;
    writer.Number("id", ToInt(job.id));
    writer.String("queue", job.queue);
    if (!job.key.empty()) {
      writer.String("key", job.key);
    }
    writer.Number("attempt", job.attempt);
    writer.String("action", verdict.action.empty() ? "lost" : verdict.action);
    // Whether the daemon took it.
    writer.Bool("told", told);
    if (!error.empty()) {
      writer.String("error", error);
    }
    writer.Number("took_ms", static_cast<uint64_t>(took.count()));
    writer.Number("lateness_ms", static_cast<uint64_t>(job.lateness.value_or(Millis(0)).count()));
    if (!TakesLine(STDOUT_FILENO, worker_.abandon_fd_)) {
      return;
    }
    const Status written = worker_.context_->console.Line(writer.Take());
    if (!written.ok()) {
      worker_.Fatal(written);
    }
  }

  // Waits for the handler, keeping the lease. Without an action: the lease is lost.
  Verdict Watch(const JobView& job, JobRun* run) {
    const Millis lease = LeaseOf(job);
    const Millis extend_every = std::max(Millis(1), lease / 2);
    const Millis retry_every = std::clamp(lease / kPartToRetry, Millis(1), kExtendRetryMax);
    Status extended;
    BootTime extend_at = lease_end_ - lease + extend_every;
    const BootTime kill_at =
        options_.handler_timeout.has_value() ? Now() + *options_.handler_timeout : BootTime::max();
    for (;;) {
      switch (run->Wait(std::min(extend_at, kill_at), wake_fd_)) {
        case JobRun::Event::kDone:
          return run->verdict();
        case JobRun::Event::kWoken:
          if (!worker_.abandoning()) {
            run->End(kGraceWhenLost);
            return Verdict{"", "lease lost, handler stopped (the job was handed out again)"};
          }
          api_->GiveUpWhen(-1);
          EndWithinLease(job, run);
          return GivenBack();
        case JobRun::Event::kDeadline:
          break;
      }
      if (Now() >= kill_at) {
        EndWithinLease(job, run);
        return Verdict{
            "nack",
            "handler timed out after " + protocol::FormatDuration(*options_.handler_timeout)};
      }
      // The time in which it ends is the lease's too.
      const BootTime stop_at = lease_end_ - std::min(options_.grace, lease / kPartToEnd);
      // A try that leaves its answer no time would extend a lease whose handler is being stopped.
      if (extended.ok() || Now() < stop_at) {
        // A daemon that hangs must not keep us from looking at the clock.
        extended = Extend(job, options_.lease, std::min(stop_at, kill_at) - Now());
      }
      if (extended.ok()) {
        extend_at = Now() + extend_every;
      } else if (protocol::MayPass(extended) && Now() < stop_at) {
        // Of an answer that had only the rest of the handler's time nothing can be said.
        if (kill_at > stop_at || extended.reason() != "timed_out") {
          worker_.ReportOutage(extended);
        }
        extend_at = Now() + 2 * retry_every <= stop_at ? Now() + retry_every : stop_at;
      } else if (protocol::MayPass(extended)) {
        // The daemon may give the job to another worker when the lease is over.
        run->End(TimeToEnd(extended));
        return Verdict{"", "lease ran out, handler stopped (" + extended.message() + ")"};
      } else {
        run->End(TimeToEnd(extended));
        return Lost(extended, "handler stopped");
      }
    }
  }

  // A handler that tidies up is at work still: a lease that is shorter than its grace would have
  // the job handed out beside it, and the nack refused.
  void EndWithinLease(const JobView& job, JobRun* run) {
    const Millis wanted = options_.grace + kFinishTime;
    const Millis left = lease_end_ - Now();
    const Status kept =
        left >= wanted ? OkStatus() : Extend(job, wanted, std::min<Millis>(left, kExtendRetryMax));
    run->End(kept.ok() ? options_.grace : TimeToEnd(kept));
  }

  // What a handler has to tidy up in when its lease could not be extended: no more than the lease
  // has, and hardly any when the job may be another worker's already.
  Millis TimeToEnd(const Status& refusal) const {
    const Millis left = refusal.reason() == "lease_lost" ? kGraceWhenLost : lease_end_ - Now();
    return std::clamp(left, Millis(0), options_.grace);
  }

  Status Extend(const JobView& job, std::optional<Millis> lease, Millis at_most) {
    protocol::LeaseChange change;
    change.lease = lease;
    const BootTime asked = Now();
    const Status status =
        api_->ChangeLease(
                FormatLeaseToken(*job.lease_token), "extend", change, std::max(at_most, Millis(1)))
            .status();
    if (status.ok()) {
      lease_end_ = asked + lease.value_or(job.lease);
      worker_.ReportBack();
    }
    return status;
  }

  // Tells the daemon, again and again while it is away: the work is done and must not be forgotten.
  // The lease fences, so that a repeated ack cannot harm.
  std::string Finish(const JobView& job, const Verdict& verdict, bool* told) {
    protocol::LeaseChange change;
    change.error = verdict.error;
    change.delay = verdict.delay;
    change.counts_as_attempt = verdict.counts_as_attempt;
    const bool in_time = Now() < lease_end_;
    bool answer_lost = false;
    for (int tries = 0;; ++tries) {
      std::optional<Millis> at_most;
      if (worker_.abandoning()) {
        api_->GiveUpWhen(-1);
        at_most = kFinishTimeWhenAbandoning;
      }
      const Status status = api_->ChangeLease(FormatLeaseToken(*job.lease_token),
                                              verdict.action,
                                              change,
                                              at_most.value_or(Millis::max()))
                                .status();
      const std::string said =
          verdict.action +
          (verdict.error.empty() ? "" : " (" + EscapeControls(verdict.error) + ")");
      *told = status.ok();
      if (status.ok()) {
        worker_.ReportBack();
        return said;
      }
      answer_lost = answer_lost || status.code() == StatusCode::kUnknown;
      if (!protocol::MayPass(status)) {
        // Of a lease whose time was over whoever has the job now tells, and a job that is handed
        // out again has what a nack asks for.
        const bool in_vain =
            status.reason() != "lease_lost" || (in_time && verdict.action != "nack");
        if (in_vain) {
          worker_.CountUndelivered();
        }
        // That a line has ": ack" means that the daemon took it.
        return answer_lost
                   ? "unknown, the answer to " + said + " was lost (" + status.message() + ")"
                   : "refused " + said + ": " + status.message();
      }
      worker_.ReportOutage(status);
      const bool hangs = at_most.has_value() && status.reason() == "timed_out";
      if (worker_.stopping() && (hangs || tries >= kFinishTriesWhenStopping)) {
        worker_.CountUndelivered();
        return "not delivered " + said + ": " + status.message();
      }
      const timespec nap{.tv_sec = 0, .tv_nsec = 200'000'000};
      if (worker_.stopping()) {
        nanosleep(&nap, nullptr);
      } else {
        worker_.Pause(Backoff(tries, kLeaseRetryMax));
      }
    }
  }

  Worker& worker_;
  const int wake_fd_;
  const WorkOptions& options_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<JobHandler> handler_;
  BootTime lease_end_;  // of the job in hand, at the earliest
  int lease_tries_ = 0;
  bool drained_ = false;
  bool held_back_ = false;
};

Worker::Worker(Context* context, WorkOptions options)
    : context_(context),
      options_(std::move(options)),
      stop_fd_(eventfd(0, EFD_CLOEXEC)),
      abandon_fd_(eventfd(0, EFD_CLOEXEC)) {
  DELAYD_CHECK(stop_fd_ >= 0);
  DELAYD_CHECK(abandon_fd_ >= 0);
  for (size_t i = 0; i < options_.concurrency; ++i) {
    wake_fds_.push_back(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
    DELAYD_CHECK(wake_fds_.back() >= 0);
  }
  // A handler may end without reading its payload.
  signal(SIGPIPE, SIG_IGN);
}

Worker::~Worker() {
  close(stop_fd_);
  close(abandon_fd_);
  for (const int fd : wake_fds_) {
    close(fd);
  }
}

Status Worker::Run() {
  std::vector<std::unique_ptr<Slot>> slots;
  for (size_t i = 0; i < options_.concurrency; ++i) {
    DELAYD_ASSIGN_OR_RETURN(std::unique_ptr<Api> api, context_->OpenApi());
    slots.push_back(std::make_unique<Slot>(this, std::move(api), wake_fds_[i]));
  }
  std::vector<std::thread> threads;
  threads.reserve(slots.size());
  try {
    for (const auto& slot : slots) {
      threads.emplace_back([&slot] { slot->Run(); });
    }
  } catch (const std::system_error& error) {
    // Not by an abort: those that run have jobs.
    Fatal(ResourceExhausted("no thread can be started for job " +
                            std::to_string(threads.size() + 1) + " of --concurrency " +
                            std::to_string(slots.size()) + ": " + error.code().message() + "; " +
                            std::string(kCureForProcesses)));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::lock_guard lock(fatal_mutex_);
  return fatal_;
}

void Worker::Stop() {
  const int stops = ++stops_;
  const uint64_t one = 1;
  ssize_t written = write(stop_fd_, &one, sizeof one);
  if (stops > 1) {
    written = write(abandon_fd_, &one, sizeof one);
    for (const int fd : wake_fds_) {
      written = write(fd, &one, sizeof one);
    }
  }
  static_cast<void>(written);
}

bool Worker::TakeTurn() {
  if (!options_.count.has_value()) {
    return true;
  }
  // Never above the count, not for a moment: a slot that gave its turn back just then would find no
  // turn, and end, though none is taken.
  uint64_t taken = turns_taken_.load();
  while (taken < *options_.count) {
    if (turns_taken_.compare_exchange_weak(taken, taken + 1)) {
      return true;
    }
  }
  return false;
}

void Worker::GiveTurnBack() {
  if (options_.count.has_value()) {
    turns_taken_.fetch_sub(1);
  }
}

void Worker::CountUndelivered() {
  if (stopping() || options_.drain || options_.count.has_value()) {
    ++undelivered_;
  }
}

void Worker::Fatal(const Status& status) {
  const std::lock_guard lock(fatal_mutex_);
  if (fatal_.ok()) {
    fatal_ = status;
  }
  if (!stopping()) {
    Stop();
  }
}

void Worker::Pause(Millis time) const {
  pollfd entry{.fd = stop_fd_, .events = POLLIN, .revents = 0};
  poll(&entry, 1, static_cast<int>(time.count()));
}

void Worker::ReportOutage(const Status& status) {
  // Who was stopped twice has given up the call, and waits no longer.
  if (!abandoning() && TakesLine(STDERR_FILENO) && !outage_.exchange(true)) {
    // Nothing of it has to be looked for: leases fence.
    context_->console.Warn(Status(
        status.code(), protocol::WithoutWarning(status) + "; waiting for delayd", status.reason()));
  }
}

void Worker::ReportBack() {
  if (outage_.load() && TakesLine(STDERR_FILENO) && outage_.exchange(false)) {
    context_->console.Say("delayd answers again");
  }
}

}  // namespace delayd::cli
