#include "cli/verbs/job_refs.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class RunVerb final : public Verb {
 public:
  std::string_view name() const override { return "run"; }

  std::string_view summary() const override { return "Make scheduled jobs due now"; }

  std::string_view details() const override {
    return "The same as reschedule --in 0s: the next worker that is free gets them.\n"
           "\n"
           "Examples:\n"
           "  delayctl run 4711\n"
           "  delayctl run --queue orders --key order:1001";
  }

  void Declare(Options* options) override { refs_.Declare(options); }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::vector<JobRef> jobs, refs_.Resolve());
    return ForEachJob(
        jobs,
        [](Api* api, const JobRef& ref) {
          return api->Reschedule(ref, {.due = DueAfter{}, .priority = std::nullopt});
        },
        [&](const JobView& job) {
          context->console.Words("job " + std::to_string(ToInt(job.id)) + " in queue " + job.queue +
                                 " is " + std::string(JobStateName(job.state)));
        },
        context);
  }

 private:
  JobRefs refs_;
};

}  // namespace

std::unique_ptr<Verb> MakeRun() {
  return std::make_unique<RunVerb>();
}

}  // namespace delayd::cli
