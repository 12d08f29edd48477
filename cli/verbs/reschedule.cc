#include "cli/human_time.h"
#include "cli/verbs/job_selection.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class RescheduleVerb final : public Verb {
 public:
  std::string_view name() const override { return "reschedule"; }

  std::string_view summary() const override { return "Move jobs to another due time or priority"; }

  std::string_view details() const override {
    return "A filter in place of ids means all jobs that fit it; they get one due time.\n"
           "\n"
           "Examples:\n"
           "  delayctl reschedule 4711 --in 10m\n"
           "  delayctl reschedule --queue orders --key order:1001 --at 2027-01-01T09:00:00Z\n"
           "  delayctl reschedule --queue orders --due-before 10m --in 1h --yes";
  }

  void Declare(Options* options) override {
    selection_.Declare(options, {JobState::kScheduled, JobState::kReady});
    selection_.DeclareIfMatch(options);
    options->Duration("--in", &in_, "due this long from now");
    options->Time(
        "--at", &at_, "due at this wall-clock time ('tomorrow 09:00', 2027-01-01T09:00:00Z)");
    options->Number("--priority", 0, 0xffffffff, &priority_, "smaller is handed out first");
    options->Needs("(--in DURATION | --at TIME | --priority N)");
  }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const protocol::RescheduleRequest request, MakeRequest());
    if (selection_.IsFilter()) {
      return selection_.ChangeMany("reschedule", "rescheduled", request, context);
    }
    DELAYD_ASSIGN_OR_RETURN(const std::vector<JobRef> jobs, selection_.ResolveRefs());
    return ForEachJob(
        jobs,
        [&](Api* api, const JobRef& ref) {
          api->UseIfMatch(selection_.if_match());
          return api->Reschedule(ref, request);
        },
        [&](const JobView& job) {
          const WallTime now = context->DaemonNow();
          context->console.Words("job " + std::to_string(ToInt(job.id)) + " in queue " + job.queue +
                                 " " + DueFromNow(job.due, now) + " (" +
                                 context->TimeText(job.due) + "), priority " +
                                 std::to_string(job.priority));
        },
        context);
  }

 private:
  StatusOr<protocol::RescheduleRequest> MakeRequest() const {
    if (in_.has_value() && at_.has_value()) {
      return UsageError("both --in and --at are given; keep one");
    }
    protocol::RescheduleRequest request;
    if (in_.has_value()) {
      request.due = DueAfter{*in_};
    } else if (at_.has_value()) {
      request.due = DueAt{*at_};
    }
    if (priority_.has_value()) {
      request.priority = static_cast<uint32_t>(*priority_);
    }
    if (!request.due.has_value() && !request.priority.has_value()) {
      return UsageError("nothing to change; give --in, --at or --priority");
    }
    return request;
  }

  JobSelection selection_;
  std::optional<Millis> in_;
  std::optional<WallTime> at_;
  std::optional<uint64_t> priority_;
};

}  // namespace

std::unique_ptr<Verb> MakeReschedule() {
  return std::make_unique<RescheduleVerb>();
}

}  // namespace delayd::cli
