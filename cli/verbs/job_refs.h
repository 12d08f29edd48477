// cli/verbs/job_refs.h — "ID... or --queue Q --key K", shared by show, cancel and reschedule.
//
// Threads: one owner.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/job.h"
#include "cli/context.h"
#include "cli/options.h"

namespace delayd::cli {

class JobRefs {
 public:
  void Declare(Options* options);
  // The jobs that were named: at least one.
  StatusOr<std::vector<JobRef>> Resolve() const;

  // The queue that was named without a key or ids: all of it is meant.
  const std::optional<std::string>& whole_queue() const {
    static const std::optional<std::string> kNone;
    return key_.has_value() || !ids_.empty() ? kNone : queue_;
  }

 private:
  std::vector<std::string> ids_;
  std::optional<std::string> queue_;
  std::optional<std::string> key_;
};

StatusOr<JobId> ParseJobId(std::string_view text);

// Calls once for each job, prints the jobs that came back (in words through `say` when a table is
// asked for) and an error line for each other.
ExitCode ForEachJob(const std::vector<JobRef>& jobs,
                    const std::function<StatusOr<JobView>(const JobRef&)>& call,
                    const std::function<void(const JobView&)>& say,
                    Context* context);

}  // namespace delayd::cli
