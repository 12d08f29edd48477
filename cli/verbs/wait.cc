#include <algorithm>

#include "cli/human_time.h"
#include "cli/outage.h"
#include "cli/verbs/job_refs.h"
#include "cli/verbs/verbs.h"
#include "protocol/nearest.h"

namespace delayd::cli {
namespace {

constexpr Millis kLookEvery{200};
// How long an answer may take even if --wait is over.
constexpr Millis kLookTime{1000};

class WaitVerb final : public Verb {
 public:
  std::string_view name() const override { return "wait"; }

  std::string_view summary() const override { return "Wait until a job is finished or dead"; }

  std::string_view details() const override {
    return "Exit codes: 0 acked (with --for fired: due), 1 dead, 3 not known, or gone, 4\n"
           "cancelled, 6 --wait is over.\n"
           "\n"
           "A job without a key, in a queue without history_retention, is forgotten when it\n"
           "ends: it is gone, and nobody knows whether it was acked, cancelled or dropped. If\n"
           "you need to know, give it a key.\n"
           "\n"
           "With --for fired, a job that was handed out has fired, here or where it was\n"
           "exported, whatever has become of it since. One whose attempts began anew, by enqueue\n"
           "--on-conflict replace, is waited for again.\n"
           "\n"
           "It takes one job. A daemon that goes away, or hangs, is waited for too.\n"
           "\n"
           "Examples:\n"
           "  delayctl wait --queue orders --key order:1001 --wait 1h && echo done\n"
           "  delayctl wait --queue orders --key order:1001 --for fired";
  }

  void Declare(Options* options) override {
    refs_.DeclareOne(options);
    options->Duration("--wait", &wait_, "give up after this long (never)");
    options->Text("--for",
                  "WHAT",
                  &what_,
                  "done (default), or fired: due, whether worked on or not",
                  {"done", "fired"});
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::vector<JobRef> jobs, refs_.Resolve());
    if (jobs.size() != 1) {
      return UsageError("wait takes one job; for many, wait for one after another");
    }
    if (what_.has_value() && what_ != "done" && what_ != "fired") {
      return UsageError("--for: " + protocol::Quoted(*what_) + " is unknown; use done or fired");
    }
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    return WaitFor(*api, jobs.front(), context);
  }

 private:
  StatusOr<ExitCode> WaitFor(Api& api, const JobRef& ref, Context* context) const {
    const BootTime start = context->clock.Sample().boot;
    const auto left = [&] {
      return wait_.has_value() ? *wait_ - (context->clock.Sample().boot - start) : Millis::max();
    };
    std::optional<JobView> last;
    Outage outage(&context->console);
    for (;;) {
      // A key may pass to another job; wait for the one that had it first.
      const StatusOr<JobView> job =
          api.Show(last.has_value() ? JobRef(last->id) : ref, std::max(left(), kLookTime));
      if (last.has_value() && job.status().code() == StatusCode::kNotFound) {
        return Gone(last->id);
      }
      // A restart takes a moment, and a user may wait for hours.
      if (last.has_value() && outage.MayWaitOut(job.status())) {
        // Checked below: whether there is time left.
      } else if (!job.ok()) {
        const bool cut_short = job.status().reason() == "timed_out" && left() <= Millis(0);
        return cut_short ? job.status().Followed(" and --wait") : job.status();
      } else if (const std::optional<ExitCode> code = Outcome(*job, last)) {
        Say(*job, context);
        return *code;
      } else {
        last = *job;
        outage.Over();
      }
      const Millis rest = left();
      if (rest <= Millis(0)) {
        return outage.status().ok() ? StillThere(ref, *last, context->DaemonNow())
                                    : outage.status();
      }
      context->sleep(std::min(kLookEvery, rest));
    }
  }

  Status StillThere(const JobRef& ref, const JobView& job, WallTime now) const {
    return DeadlineExceeded(DescribeJobRef(ref) + " is still " +
                            std::string(JobStateName(job.state)) + " after " +
                            RoughDuration(*wait_) + "; it " + DueFromNow(job.due, now));
  }

  // The job has left no trace. Its last known state tells nothing: between two looks it may have
  // fallen due and been acked, or been given back and cancelled.
  static Status Gone(JobId id) {
    return NotFound("job " + std::to_string(ToInt(id)) +
                        " is gone: acked, cancelled or dropped, and it left no history to tell "
                        "which; give jobs that are waited for a key, or their queue a "
                        "history_retention",
                    "gone");
  }

  // Between two looks a job may have been handed out and given back. If that cost no attempt, the
  // number of hand-outs shows it; but those before the first look may belong to replaced content.
  static bool WasHandedOut(const JobView& job, const std::optional<JobView>& last) {
    return job.attempt > 0 || (last.has_value() && job.reserves > last->reserves);
  }

  // None: keep waiting.
  std::optional<ExitCode> Outcome(const JobView& job, const std::optional<JobView>& last) const {
    if (what_ == "fired" && WasHandedOut(job, last)) {
      return kExitOk;
    }
    if (job.state == JobState::kFinished) {
      return job.outcome == "cancelled" ? kExitRefused : kExitOk;
    }
    if (job.state == JobState::kDead) {
      return kExitFailed;
    }
    if (what_ == "fired" && job.state != JobState::kScheduled) {
      return kExitOk;
    }
    return std::nullopt;
  }

  static void Say(const JobView& job, Context* context) {
    if (context->globals.output != OutputFormat::kTable) {
      context->console.out() << protocol::JobToJson(job) << '\n';
    } else if (!context->globals.quiet) {
      context->console.Words("job " + std::to_string(ToInt(job.id)) + " in queue " + job.queue +
                             ": " +
                             (job.state == JobState::kScheduled ? "scheduled again"
                              : job.outcome.empty() ? std::string(JobStateName(job.state))
                                                    : job.outcome));
    }
  }

  JobRefs refs_;
  std::optional<Millis> wait_;
  std::optional<std::string> what_;
};

}  // namespace

std::unique_ptr<Verb> MakeWait() {
  return std::make_unique<WaitVerb>();
}

}  // namespace delayd::cli
