#include <algorithm>

#include "base/limits.h"
#include "cli/human_time.h"
#include "cli/verbs/job_selection.h"
#include "cli/verbs/verbs.h"
#include "protocol/job_json.h"

namespace delayd::cli {
namespace {

class KickVerb final : public Verb {
 public:
  std::string_view name() const override { return "kick"; }

  std::string_view summary() const override { return "Make dead or scheduled jobs ready now"; }

  std::string_view details() const override {
    return "A dead job gets all its attempts again. With a queue and --count: the jobs that have\n"
           "been dead for longest or, if none is dead, the scheduled ones that are due soonest.\n"
           "\n"
           "A filter in place of ids means all dead jobs that fit it (with --state scheduled,\n"
           "all scheduled ones), of all queues if it names none.\n"
           "\n"
           "Exit code 4: the job is ready or leased already.\n"
           "\n"
           "Examples:\n"
           "  delayctl kick 4711\n"
           "  delayctl kick --queue orders --key order:1001\n"
           "  delayctl kick --queue orders --count 100\n"
           "  delayctl kick --queue orders --state dead --key-prefix order: --dry-run";
  }

  void Declare(Options* options) override {
    selection_.Declare(options, {JobState::kDead, JobState::kScheduled});
    options->Number(
        "--count", 1, UINT32_MAX, &count_, "with --queue alone: at most this many jobs");
  }

  StatusOr<ExitCode> Run(Context* context) override {
    if (count_.has_value()) {
      return KickFirst(context);
    }
    if (selection_.IsFilter()) {
      return selection_.ChangeMany("kick", "kicked", {}, context, JobState::kDead);
    }
    DELAYD_ASSIGN_OR_RETURN(const std::vector<JobRef> jobs, selection_.ResolveRefs());
    return ForEachJob(
        jobs,
        [](Api* api, const JobRef& ref) { return api->Kick(ref); },
        [&](const JobView& job) {
          context->console.Words("kicked job " + std::to_string(ToInt(job.id)) + " in queue " +
                                 job.queue + ", it is " + std::string(JobStateName(job.state)));
        },
        context);
  }

 private:
  StatusOr<ExitCode> KickFirst(Context* context) const {
    if (!selection_.WholeQueue().has_value()) {
      return UsageError("--count goes with --queue alone: the first so many jobs of the queue");
    }
    const std::string queue = *selection_.WholeQueue();
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(queue));
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    uint64_t kicked = 0;
    if (const Status status = KickSteps(*api, queue, &kicked); !status.ok()) {
      const Status told = status.Followed(HowFar(status, kicked));
      if (kicked == 0) {
        return told;
      }
      context->console.Error(told);
      return kExitFailed;  // only part done
    }
    if (context->globals.output != OutputFormat::kTable) {
      context->console.out() << protocol::KickedToJson(kicked) << '\n';
    } else if (!context->globals.quiet) {
      context->console.out() << "kicked " << Jobs(kicked) << " in queue " << queue << '\n';
    }
    return kExitOk;
  }

  uint32_t NextStep(uint64_t kicked) const {
    return static_cast<uint32_t>(std::min<uint64_t>(*count_ - kicked, limits::kKickCountMax));
  }

  // Tells how far it came, because repeating the command would kick as many other jobs.
  std::string HowFar(const Status& failure, uint64_t kicked) const {
    const bool more = failure.code() == StatusCode::kUnknown;
    if (kicked == 0 && !more) {
      return "";
    }
    return " (stopped when " + std::to_string(kicked) + " of " + Jobs(*count_) +
           " had been kicked" +
           (more ? "; up to " + std::to_string(NextStep(kicked)) + " more may have been" : "") +
           ")";
  }

  // The daemon kicks a bounded number at a time; fewer than asked for means that there are no more.
  // If it began with dead jobs, it ends with them: the next step would make scheduled jobs ready.
  Status KickSteps(Api& api, const std::string& queue, uint64_t* kicked) const {
    bool dead_first = false;
    while (*kicked < *count_) {
      DELAYD_ASSIGN_OR_RETURN(const protocol::QueueCounts counts, api.Queue(queue));
      dead_first = dead_first || counts.dead > 0;
      if (dead_first && counts.dead == 0) {
        break;
      }
      const uint32_t wish = NextStep(*kicked);
      DELAYD_ASSIGN_OR_RETURN(const uint64_t some, api.KickQueue(queue, wish));
      *kicked += some;
      if (some < wish) {
        break;
      }
    }
    return OkStatus();
  }

  JobSelection selection_;
  std::optional<uint64_t> count_;
};

}  // namespace

std::unique_ptr<Verb> MakeKick() {
  return std::make_unique<KickVerb>();
}

}  // namespace delayd::cli
