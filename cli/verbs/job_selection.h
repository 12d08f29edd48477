// cli/verbs/job_selection.h — which jobs a change applies to: those named, or all that a filter
// finds; and how a bulk change is confirmed, carried out and reported.
//
// What:    a bulk change is a loop of steps, each one commit of the daemon. If it is stopped in the
// middle, the same command does the rest.
// Errors:  kInvalidArgument "usage" for contradictions, and for a filter without --yes when nobody
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
  // `states`: the states in which a job can be changed this way.
  void Declare(Options* options, std::vector<JobState> states);
  // For verbs that can require the job to be unchanged since it was read.
  void DeclareIfMatch(Options* options);

  const std::optional<std::string>& if_match() const { return if_match_; }

  // Whether a filter was given instead of ids or a key.
  bool IsFilter() const;
  // The queue, when nothing but a queue was given.
  std::optional<std::string> WholeQueue() const;
  StatusOr<std::vector<JobRef>> ResolveRefs() const;

  // `action` is the word after "/v1/jobs:"; `done` its participle: "cancelled". `state`: which jobs
  // to change if the filter names no state; none: all.
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

  // Applied one after another.
  using Filters = std::vector<protocol::JobFilterText>;

  StatusOr<protocol::JobFilterText> ResolveFilter() const;
  StatusOr<ExitCode> ChangeFound(Api* api,
                                 std::string_view action,
                                 std::string_view done,
                                 const protocol::RescheduleRequest& change,
                                 const Filters& filters,
                                 Context* context) const;
  // Tells that dead jobs were left alone, if the filter may have seemed to include them.
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
