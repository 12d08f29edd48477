#include "cli/human_time.h"
#include "cli/verbs/job_refs.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class TouchVerb final : public Verb {
 public:
  std::string_view name() const override { return "touch"; }

  std::string_view summary() const override { return "Start the delay of jobs again, from now"; }

  std::string_view details() const override {
    return "For watchdogs and debouncing: the job fires only when nobody has touched it for as\n"
           "long as the delay it was enqueued with. Exit code 4: too late, a worker has it, or it\n"
           "is finished; 3: no such job.\n"
           "\n"
           "Examples:\n"
           "  delayctl enqueue --in 30s --queue alerts --key host:web1 'web1 is silent'\n"
           "  delayctl touch --queue alerts --key host:web1";
  }

  void Declare(Options* options) override { refs_.Declare(options); }

  StatusOr<ExitCode> Run(Context* context) override {
    protocol::RescheduleRequest request;
    request.touch = true;
    DELAYD_ASSIGN_OR_RETURN(const std::vector<JobRef> jobs, refs_.Resolve());
    return ForEachJob(
        jobs,
        [&](Api* api, const JobRef& ref) { return api->Reschedule(ref, request); },
        [&](const JobView& job) {
          const WallTime now = context->DaemonNow();
          context->console.Words("job " + std::to_string(ToInt(job.id)) + " in queue " + job.queue +
                                 " " + DueFromNow(job.due, now) + " (" +
                                 context->TimeText(job.due) + ")");
        },
        context);
  }

 private:
  JobRefs refs_;
};

}  // namespace

std::unique_ptr<Verb> MakeTouch() {
  return std::make_unique<TouchVerb>();
}

}  // namespace delayd::cli
