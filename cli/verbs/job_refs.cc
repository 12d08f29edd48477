#include "cli/verbs/job_refs.h"

#include <charconv>
#include <span>

#include "base/limits.h"
#include "cli/human_time.h"
#include "protocol/job_json.h"
#include "protocol/nearest.h"

namespace delayd::cli {
namespace {

constexpr std::string_view kQueueOfKey = "with --key: the job's queue (default)";

std::string TextOf(const JobRef& ref) {
  const JobId* id = std::get_if<JobId>(&ref);
  return id != nullptr ? std::to_string(ToInt(*id)) : std::get<KeyRef>(ref).key;
}

// Of several jobs, names the one whose call failed and those that were not tried: a failure of the
// daemon or the connection names none.
Status WithJobs(const Status& status, std::span<const JobRef> from_failed) {
  const std::string failed = TextOf(from_failed.front());
  std::string untried;
  for (const JobRef& ref : from_failed.subspan(1)) {
    untried += (untried.empty() ? "" : " ") + TextOf(ref);
  }
  Status told =
      status.Followed(" (job " + failed + (untried.empty() ? "" : "; not tried: " + untried) + ")");
  told.AddDetail("job", failed);
  if (!untried.empty()) {
    told.AddDetail("not_tried", untried);
  }
  return told;
}

StatusOr<JobId> ParseJobId(std::string_view text) {
  uint64_t id = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  if (stop == end && (error == std::errc::result_out_of_range || id > limits::kJobIdMax)) {
    return UsageError("there is no job id " + protocol::Quoted(text) + "; they end at " +
                      std::to_string(limits::kJobIdMax));
  }
  if (error != std::errc() || stop != end || id == 0) {
    return UsageError("job id " + protocol::Quoted(text) +
                      " is no positive whole number; for a key, give --queue and --key");
  }
  return JobId{id};
}

}  // namespace

void JobRefs::Declare(Options* options, std::string_view others) {
  options->Positionals("(ID... | --key KEY" + std::string(others) + ")", &ids_, "job ids");
  DeclareKey(options,
             others.empty() ? kQueueOfKey
                            : "with --key: the job's queue (default); without: the whole queue");
}

void JobRefs::DeclareOne(Options* options) {
  // Accepts several ids, so that the message can say that there are too many, not that the second
  // one is unexpected.
  options->Positionals("(ID | --key KEY)", &ids_, "the job's id");
  DeclareKey(options, kQueueOfKey);
}

void JobRefs::DeclareKey(Options* options, std::string_view what_queue) {
  options->Text("--queue", "QUEUE", &queue_, std::string(what_queue));
  options->Text("-k,--key", "KEY", &key_, "the job's key, in place of its id");
}

StatusOr<std::vector<JobRef>> JobRefs::Resolve() const {
  if (key_.has_value()) {
    if (!ids_.empty()) {
      return UsageError("ids and --key are both given; name the jobs one way");
    }
    const std::string queue = queue_.value_or("default");
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(queue));
    DELAYD_RETURN_IF_ERROR(ValidateKey(*key_));
    return std::vector<JobRef>{KeyRef{queue, *key_}};
  }
  if (queue_.has_value()) {
    return UsageError("--queue goes with --key; an id needs no queue");
  }
  if (ids_.empty()) {
    return UsageError("no job is named; give its ID, or --queue QUEUE --key KEY");
  }
  std::vector<JobRef> jobs;
  for (const std::string& id : ids_) {
    DELAYD_ASSIGN_OR_RETURN(const JobId job, ParseJobId(id));
    jobs.emplace_back(job);
  }
  return jobs;
}

StatusOr<ExitCode> ForEachJob(const std::vector<JobRef>& jobs,
                              const std::function<StatusOr<JobView>(Api*, const JobRef&)>& call,
                              const std::function<void(const JobView&)>& say,
                              Context* context) {
  DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
  std::ostream& out = context->console.out();
  ExitCode code = kExitOk;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const StatusOr<JobView> job = call(api.get(), jobs[i]);
    const ExitCode code_of_job = ExitCodeOf(job.status());
    code = Combine(code, code_of_job, i == 0);
    if (!job.ok()) {
      // The daemon is away or hangs: the other calls would only fail alike, each after its timeout.
      const bool ends =
          job.status().code() == StatusCode::kUnavailable || code_of_job == kExitTimedOut;
      const bool names_job = !ends && job.status().code() != StatusCode::kUnknown;
      const std::span<const JobRef> from_failed = std::span(jobs).subspan(i);
      context->console.Error(
          jobs.size() == 1 || names_job
              ? job.status()
              : WithJobs(job.status(), ends ? from_failed : from_failed.first(1)));
      if (ends) {
        return code;
      }
      continue;
    }
    if (context->globals.quiet) {
      out << ToInt(job->id) << '\n';
    } else if (context->globals.output == OutputFormat::kTable) {
      say(*job);
    } else {
      // One document per job in both JSON formats, so that each answer is printed as it arrives.
      out << protocol::JobToJson(*job) << '\n';
    }
  }
  return code;
}

}  // namespace delayd::cli
