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

void JobWatch::Show(std::vector<JobView> jobs) {
  if (context_->globals.output == OutputFormat::kTable) {
    Redraw(jobs);
    return;
  }
  for (JobView& job : jobs) {
    job.lease_expires.reset();
  }
  PrintChanges(jobs);
}

void JobWatch::Redraw(const std::vector<JobView>& jobs) {
  context_->console.View([&] {
    context_->console.out() << context_->TimeText(context_->clock.Sample().wall) << "  "
                            << Jobs(jobs.size()) << "; Ctrl-C ends\n";
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

void JobWatch::PrintChanges(const std::vector<JobView>& jobs) {
  std::map<JobId, std::string> now;
  for (const JobView& job : jobs) {
    std::string json = protocol::JobToJson(job);
    const auto before = seen_.find(job.id);
    if (before == seen_.end()) {
      PrintChange("appeared", json);
    } else if (before->second != json) {
      PrintChange("changed", json);
    }
    now.emplace(job.id, std::move(json));
  }
  for (const auto& [id, json] : seen_) {
    if (!now.contains(id)) {
      PrintChange("gone", json);
    }
  }
  seen_ = std::move(now);
  context_->console.out().flush();
}

}  // namespace delayd::cli
