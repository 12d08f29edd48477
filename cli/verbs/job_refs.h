// cli/verbs/job_refs.h — "ID... or --queue Q --key K", shared by the verbs that act on single jobs.
//
// Threads: one owner.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "cli/context.h"
#include "cli/exit_code.h"
#include "cli/options.h"

namespace delayd::cli {

class JobRefs {
 public:
  // `others`: what else may take the place of ids, as in " | FILTER".
  void Declare(Options* options, std::string_view others = "");
  // For a verb that takes one job.
  void DeclareOne(Options* options);
  // The jobs that were named: at least one.
  StatusOr<std::vector<JobRef>> Resolve() const;

  bool names_jobs() const { return !ids_.empty() || key_.has_value(); }

  bool names_queue_only() const { return queue_.has_value() && !names_jobs(); }

  const std::optional<std::string>& queue() const { return queue_; }

 private:
  void DeclareKey(Options* options, std::string_view what_queue);

  std::vector<std::string> ids_;
  std::optional<std::string> queue_;
  std::optional<std::string> key_;
};

// Calls the daemon once for each job. Prints each job that comes back (in words, by `say`, when the
// output is a table), and an error line for each of the others. The first failure of the daemon
// itself ends it; its line names the jobs that were not tried.
StatusOr<ExitCode> ForEachJob(const std::vector<JobRef>& jobs,
                              const std::function<StatusOr<JobView>(Api*, const JobRef&)>& call,
                              const std::function<void(const JobView&)>& say,
                              Context* context);

}  // namespace delayd::cli
