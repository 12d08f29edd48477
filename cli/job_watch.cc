#include "cli/job_watch.h"

#include <utility>

#include "cli/human_time.h"
#include "cli/job_output.h"
#include "cli/options.h"
#include "protocol/job_json.h"
#include "protocol/json_writer.h"

namespace delayd::cli {

Status CanWatch(const Context& context) {
  const OutputFormat output = context.globals.output;
  if (context.globals.quiet) {
    return UsageError("--watch shows what becomes of jobs, and -q ids alone; leave one out");
  }
  if (output == OutputFormat::kJson) {
    return UsageError("--watch never ends, and one JSON document would neither; use -o jsonl");
  }
  if (output == OutputFormat::kTable && !context.console.traits().out_is_terminal) {
    return UsageError("--watch redraws a terminal, and stdout is none; use -o jsonl");
  }
  return OkStatus();
}

void JobWatch::Show(std::vector<JobView> jobs, bool more) {
  if (context_->globals.output == OutputFormat::kTable) {
    Redraw(jobs, more);
    return;
  }
  for (JobView& job : jobs) {
    job.lease_expires.reset();
  }
  PrintChanges(jobs, more);
}

void JobWatch::Redraw(const std::vector<JobView>& jobs, bool more) {
  context_->console.View([&] {
    context_->console.out() << context_->TimeText(context_->DaemonNow()) << "  "
                            << (more ? "the first " : "") << Jobs(jobs.size()) << "; Ctrl-C ends\n";
    JobListPrinter(context_).Print(jobs);
  });
  context_->console.out().flush();
}

void JobWatch::PrintChange(std::string_view change, const std::string& job) {
  protocol::JsonObjectWriter writer;
  writer.String("change", change);
  writer.Raw("job", job);
  context_->console.out() << writer.Take() << '\n';
}

void JobWatch::PrintChanges(const std::vector<JobView>& jobs, bool more) {
  std::map<JobId, std::string> now;
  for (const JobView& job : jobs) {
    std::string json = protocol::JobToJson(job);
    const auto before = seen_.find(job.id);
    if (before == seen_.end() && (!end_.has_value() || PlaceOf(job) < *end_)) {
      PrintChange("appeared", json);
    } else if (before != seen_.end() && before->second != json) {
      PrintChange("changed", json);
    }
    now.emplace(job.id, std::move(json));
  }
  Status told;
  for (auto& [id, json] : seen_) {
    if (now.contains(id)) {
      continue;
    }
    told = told.ok() ? PrintLeft(id, json, more) : told;
    if (!told.ok()) {
      now.emplace(id, std::move(json));  // the next look tries again
    }
  }
  seen_ = std::move(now);
  end_.reset();
  if (more && soonest_first_ && !jobs.empty()) {
    end_ = PlaceOf(jobs.back());
  }
  context_->console.out().flush();
}

Status JobWatch::PrintLeft(JobId id, const std::string& job, bool more) {
  StatusOr<JobView> found = more ? find_(id) : NotFound("the list ends before it");
  // A damaged job is out of reach for good: asked for at every look, it would hide all others.
  const StatusCode code = found.status().code();
  if (!found.ok() && code != StatusCode::kNotFound && code != StatusCode::kDataLoss) {
    return found.status();
  }
  if (!found.ok()) {
    PrintChange("gone", job);
    return OkStatus();
  }
  // Leave out what a list does not show.
  found->payload.reset();
  found->history.clear();
  found->etag.clear();
  found->lease_expires.reset();
  if (const std::string json = protocol::JobToJson(*found); json != job) {
    PrintChange("changed", json);  // rescheduled, perhaps
  }
  return OkStatus();
}

}  // namespace delayd::cli
