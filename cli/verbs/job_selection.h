// cli/verbs/job_selection.h — the jobs that a change means: named one by one, or all that a filter
// finds; and how a change of many is confirmed, carried out and told.
//
// What:    a change of many is a loop of steps, each one commit of the daemon. Stopped in the
// middle, the same command does what is left.
// Errors:  kInvalidArgument "usage" for contradictions, and for a filter without --yes where nobody
// can be asked.
// Threads: one owner.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "cli/api.h"
#include "cli/context.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/verbs/job_refs.h"
#include "protocol/bulk_json.h"

namespace delayd::cli {

class JobSelection {
 public:
  // `states`: in which jobs can be changed so.
  void Declare(Options* options, std::vector<JobState> states);
  // For verbs that can insist on the state in which the job was read.
  void DeclareIfMatch(Options* options);

  const std::optional<std::string>& if_match() const { return if_match_; }

  // Whether a filter was given, in place of ids or a key.
  bool IsFilter() const;
  // The queue, when nothing but a queue was given.
  std::optional<std::string> WholeQueue() const;
  StatusOr<std::vector<JobRef>> ResolveRefs() const;

  // `action` is what stands behind "/v1/jobs:"; `done` says it: "cancelled". `state`: of the jobs,
  // where the filter names none; none: all.
  StatusOr<ExitCode> ChangeMany(std::string_view action,
                                std::string_view done,
                                const protocol::RescheduleRequest& change,
                                Context* context,
                                std::optional<JobState> state = std::nullopt) const;

 private:
  struct Outcome {
    Status status;
    uint64_t matched = 0;
    uint64_t changed = 0;
  };

  // One after another.
  using Filters = std::vector<protocol::JobFilterText>;

  StatusOr<protocol::JobFilterText> ResolveFilter() const;
  StatusOr<ExitCode> ChangeFound(Api* api,
                                 std::string_view action,
                                 std::string_view done,
                                 const protocol::RescheduleRequest& change,
                                 const Filters& filters,
                                 Context* context) const;
  // That dead jobs are left, where the filter may have seemed to mean them.
  void TellDead(Api* api, const protocol::JobFilterText& filter, Context* context) const;
  static Outcome RunSteps(Api* api,
                          std::string_view action,
                          protocol::ChangeManyRequest request,
                          const Filters& filters,
                          uint64_t total,
                          Context* context);
  static StatusOr<ExitCode> TellDryRun(Api* api,
                                       const Filters& filters,
                                       uint64_t matched,
                                       Context* context);
  static ExitCode TellChanged(const Outcome& outcome,
                              std::string_view done,
                              Millis took,
                              Context* context);
  static bool Confirm(std::string_view action, uint64_t matched, Context* context);

  JobRefs refs_;
  std::vector<JobState> states_;
  std::optional<std::string> if_match_;
  std::optional<std::string> state_;
  std::optional<std::string> key_prefix_;
  std::optional<std::string> due_before_;
  std::optional<std::string> due_after_;
  bool dry_run_ = false;
  bool yes_ = false;
};

}  // namespace delayd::cli
