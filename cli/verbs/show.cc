#include "cli/job_output.h"
#include "cli/verbs/job_refs.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class ShowVerb final : public Verb {
 public:
  std::string_view name() const override { return "show"; }

  std::string_view summary() const override { return "Show jobs with their payloads"; }

  std::string_view details() const override {
    return "The payload of a finished job may not be kept: --payload then says so, with exit\n"
           "code 3.\n"
           "\n"
           "Examples:\n"
           "  delayctl show 4711\n"
           "  delayctl show --queue orders --key order:1001 --payload | jq .";
  }

  void Declare(Options* options) override {
    refs_.Declare(options);
    options->Flag("-p,--payload", &payload_only_, "print the payload's bytes and nothing else");
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::vector<JobRef> jobs, refs_.Resolve());
    if (payload_only_) {
      return ShowPayload(jobs, context);
    }
    bool first = true;
    return ForEachJob(
        jobs,
        [](Api* api, const JobRef& ref) { return api->Show(ref); },
        [&](const JobView& job) {
          context->console.out() << (first ? "" : "\n");
          first = false;
          PrintCard(job, context);
        },
        context);
  }

 private:
  static StatusOr<ExitCode> ShowPayload(const std::vector<JobRef>& jobs, Context* context) {
    if (jobs.size() > 1) {
      return UsageError("--payload takes one job; its bytes would run together");
    }
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(const JobView job, api->Show(jobs.front()));
    DELAYD_RETURN_IF_ERROR(PayloadIsThere(job));
    context->console.Bytes(job.payload.value_or(""));
    return kExitOk;
  }

  JobRefs refs_;
  bool payload_only_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeShow() {
  return std::make_unique<ShowVerb>();
}

}  // namespace delayd::cli
