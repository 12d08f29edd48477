#include "cli/human_time.h"
#include "cli/verbs/job_selection.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class CancelVerb final : public Verb {
 public:
  std::string_view name() const override { return "cancel"; }

  std::string_view summary() const override { return "Cancel jobs before they are handed out"; }

  std::string_view details() const override {
    return "Once it says cancelled, the job is never handed out. Exit code 4: a worker has it,\n"
           "or it is finished: acked, or cancelled already, perhaps by a try whose answer was\n"
           "lost. The message says which; with -o json, the member outcome. A finished job\n"
           "without a key, whose queue keeps no history, is not known: exit code 3.\n"
           "\n"
           "A filter in place of ids means all jobs that fit it, in all states but dead; dead\n"
           "ones with --state dead.\n"
           "\n"
           "Examples:\n"
           "  delayctl cancel 4711 4712\n"
           "  delayctl cancel --queue orders --key order:1001\n"
           "  delayctl cancel --queue orders --state scheduled --key-prefix order: --dry-run";
  }

  void Declare(Options* options) override {
    selection_.Declare(options, {JobState::kScheduled, JobState::kReady, JobState::kDead});
    selection_.DeclareIfMatch(options);
  }

  StatusOr<ExitCode> Run(Context* context) override {
    if (selection_.IsFilter()) {
      return selection_.ChangeMany("cancel", "cancelled", {}, context);
    }
    DELAYD_ASSIGN_OR_RETURN(const std::vector<JobRef> jobs, selection_.ResolveRefs());
    return ForEachJob(
        jobs,
        [&](Api* api, const JobRef& ref) {
          api->UseIfMatch(selection_.if_match());
          return api->Cancel(ref);
        },
        [&](const JobView& job) {
          const WallTime now = context->DaemonNow();
          context->console.Words("cancelled job " + std::to_string(ToInt(job.id)) + " in queue " +
                                 job.queue + ", it was due " + FromNow(job.due, now));
        },
        context);
  }

 private:
  JobSelection selection_;
};

}  // namespace

std::unique_ptr<Verb> MakeCancel() {
  return std::make_unique<CancelVerb>();
}

}  // namespace delayd::cli
