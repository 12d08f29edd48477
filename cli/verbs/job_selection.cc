#include "cli/verbs/job_selection.h"

#include <algorithm>
#include <utility>

#include "cli/human_time.h"
#include "cli/interrupt.h"
#include "cli/job_output.h"
#include "cli/progress.h"
#include "cli/verbs/list_filter.h"
#include "protocol/json_writer.h"
#include "protocol/nearest.h"

namespace delayd::cli {
namespace {

constexpr uint64_t kDryRunJobsShown = 10;
// Jobs per request; a due job may wait behind one. With 100, the daemon's default, a million jobs
// take twice as long; with 1,000 they take half as long, but the due job waits 10 ms.
constexpr uint32_t kStepJobs = 300;

// "scheduled, ready or dead".
std::string OneOf(const std::vector<JobState>& states) {
  std::string text;
  for (size_t i = 0; i < states.size(); ++i) {
    text += i == 0 ? "" : i + 1 == states.size() ? " or " : ", ";
    text += JobStateName(states[i]);
  }
  return text;
}

}  // namespace

void JobSelection::Declare(Options* options, std::vector<JobState> states) {
  states_ = std::move(states);
  std::vector<std::string> names;
  for (const JobState state : states_) {
    names.emplace_back(JobStateName(state));
  }
  refs_.Declare(options, " | FILTER");
  options->Text("--state", "STATE", &state_, "all jobs that are " + OneOf(states_), names);
  options->Text("--key-prefix", "TEXT", &key_prefix_, "all jobs whose keys begin so");
  options->TimeOrDuration(
      "--due-before", &due_before_, "all jobs due before this time, or this duration from now");
  options->TimeOrDuration(
      "--due-after", &due_after_, "all jobs due at or after this time, or this duration from now");
  options->Flag("-n,--dry-run", &dry_run_, "count the jobs, show the first, change nothing");
  options->Flag("-y,--yes", &yes_, "do not ask before many jobs are changed");
}

void JobSelection::DeclareIfMatch(Options* options) {
  options->Text("--if-match",
                "ETAG",
                &if_match_,
                "only while its etag, as show -o json tells it, is this: else exit code 4");
}

bool JobSelection::IsFilter() const {
  return state_.has_value() || key_prefix_.has_value() || due_before_.has_value() ||
         due_after_.has_value() || refs_.names_queue_only();
}

std::optional<std::string> JobSelection::WholeQueue() const {
  const bool more = state_.has_value() || key_prefix_.has_value() || due_before_.has_value() ||
                    due_after_.has_value() || dry_run_;
  return more || !refs_.names_queue_only() ? std::nullopt : refs_.queue();
}

StatusOr<std::vector<JobRef>> JobSelection::ResolveRefs() const {
  if (dry_run_) {
    return UsageError(
        "--dry-run goes with a filter: --queue, --state, --key-prefix, --due-before "
        "or --due-after");
  }
  StatusOr<std::vector<JobRef>> jobs = refs_.Resolve();
  if (jobs.ok() && jobs->size() > 1 && if_match_.has_value()) {
    return UsageError("--if-match is about one job, and several are named");
  }
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (if_match_.has_value() && (if_match_->empty() || !std::ranges::all_of(*if_match_, is_hex))) {
    return UsageError("--if-match: " + protocol::Quoted(*if_match_) +
                      " is no etag; take it from: delayctl show ID -o json | jq -r .etag");
  }
  return jobs;
}

StatusOr<protocol::JobFilterText> JobSelection::ResolveFilter() const {
  if (refs_.names_jobs()) {
    return UsageError("jobs are named and a filter is given; use one of them");
  }
  if (if_match_.has_value()) {
    return UsageError("--if-match is about one job; name it by id or key");
  }
  protocol::JobFilterText filter{.queue = refs_.queue(),
                                 .state = state_,
                                 .key_prefix = key_prefix_,
                                 .due_before = due_before_,
                                 .due_after = due_after_};
  if (key_prefix_.has_value() && key_prefix_->empty()) {
    // Most likely from an unset variable: it would mean every job.
    return UsageError("--key-prefix is empty; leave it out to mean all jobs");
  }
  if (filter.queue.has_value()) {
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(*filter.queue));
  }
  if (state_.has_value()) {
    const std::optional<JobState> state = ParseJobState(*state_);
    if (!state.has_value() || std::ranges::find(states_, *state) == states_.end()) {
      return UsageError("--state: " + protocol::Quoted(*state_) +
                        " is no state in which that can be done; use " + OneOf(states_));
    }
  }
  return filter;
}

JobSelection::Outcome JobSelection::RunSteps(Api* api,
                                             std::string_view action,
                                             protocol::ChangeManyRequest request,
                                             const Filters& filters,
                                             uint64_t total,
                                             Context* context) {
  Outcome outcome;
  request.limit = kStepJobs;
  Progress progress(&context->console, &context->clock, "jobs", total);
  for (size_t i = 0; i < filters.size() && outcome.status.ok();) {
    request.filter = filters[i];
    const StatusOr<protocol::ChangedMany> step = api->ChangeMany(action, request);
    if (!step.ok()) {
      outcome.status = step.status();
      break;
    }
    outcome.matched += step->matched;
    outcome.changed += step->changed;
    progress.Update(outcome.matched, outcome.matched);
    request.cursor = step->next_cursor;
    i += request.cursor.empty() ? 1U : 0U;
    if (i < filters.size()) {
      outcome.status = InterruptGuard::Check();
    }
  }
  return outcome;
}

StatusOr<ExitCode> JobSelection::TellDryRun(Api* api,
                                            const Filters& filters,
                                            uint64_t matched,
                                            Context* context) {
  if (context->globals.output != OutputFormat::kTable) {
    protocol::JsonObjectWriter writer;
    writer.Number("matched", matched);
    writer.Number("changed", 0);
    context->console.out() << writer.Take() << '\n';
    return kExitOk;
  }
  if (context->globals.quiet) {
    context->console.out() << matched << '\n';
    return kExitOk;
  }
  DELAYD_ASSIGN_OR_RETURN(const protocol::JobPage shown,
                          FirstJobs(*api, filters, std::min(matched, kDryRunJobsShown)));
  if (matched > 0) {
    JobListPrinter(context).Print(shown.jobs);
  }
  context->console.out() << Jobs(matched) << (matched == 1 ? " matches" : " match")
                         << "; nothing was changed\n";
  return kExitOk;
}

bool JobSelection::Confirm(std::string_view action, uint64_t matched, Context* context) {
  context->console.Draw(std::string(action) + " " + Jobs(matched) + "? [y/N] ");
  std::string answer;
  std::getline(context->in, answer);
  return answer == "y" || answer == "Y" || answer == "yes" || answer == "Yes" || answer == "YES";
}

ExitCode JobSelection::TellChanged(const Outcome& outcome,
                                   std::string_view done,
                                   Millis took,
                                   Context* context) {
  const bool all = outcome.matched == outcome.changed;
  if (context->globals.output != OutputFormat::kTable) {
    context->console.out() << protocol::ChangedManyToJson({outcome.matched, outcome.changed, ""})
                           << '\n';
  } else if (context->globals.quiet) {
    context->console.out() << outcome.changed << '\n';
  } else {
    context->console.out() << done << ' ' << Jobs(outcome.changed) << " in " << RoughDuration(took)
                           << '\n';
  }
  if (!all) {
    context->console.Say(Jobs(outcome.matched - outcome.changed) +
                         " could not be changed: a worker has them, or their records are damaged");
  }
  return all ? kExitOk : kExitFailed;
}

StatusOr<ExitCode> JobSelection::ChangeMany(std::string_view action,
                                            std::string_view done,
                                            const protocol::RescheduleRequest& change,
                                            Context* context,
                                            std::optional<JobState> state) const {
  DELAYD_ASSIGN_OR_RETURN(protocol::JobFilterText filter, ResolveFilter());
  if (state && !filter.state) {
    filter.state = JobStateName(*state);
  }
  const bool can_ask = context->in_is_terminal && context->console.traits().err_is_terminal;
  if (!yes_ && !dry_run_ && !can_ask) {
    return UsageError(
        "this changes every job that fits the filter, and there is no terminal to ask "
        "on; look with --dry-run, then give --yes");
  }
  DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
  // The same moment for every step, by the daemon's clock, which decides when a job is due.
  DELAYD_RETURN_IF_ERROR(api->FixTimes({&filter.due_before, &filter.due_after}));
  DELAYD_ASSIGN_OR_RETURN(const Filters filters, Expand(*api, filter));
  DELAYD_ASSIGN_OR_RETURN(const ExitCode code,
                          ChangeFound(api.get(), action, done, change, filters, context));
  if (code == kExitOk && !filter.state) {
    TellDead(api.get(), filter, context);
  }
  return code;
}

StatusOr<ExitCode> JobSelection::ChangeFound(Api* api,
                                             std::string_view action,
                                             std::string_view done,
                                             const protocol::RescheduleRequest& change,
                                             const Filters& filters,
                                             Context* context) const {
  protocol::ChangeManyRequest request{.filter = {}, .change = change, .dry_run = true};
  uint64_t total = 0;  // unknown
  if (!yes_ || dry_run_) {
    const Outcome counted = RunSteps(api, action, request, filters, 0, context);
    DELAYD_RETURN_IF_ERROR(counted.status);
    total = counted.matched;
    if (dry_run_) {
      return TellDryRun(api, filters, total, context);
    }
    if (total > 0 && !Confirm(action, total, context)) {
      context->console.Say("nothing was changed");
      return kExitFailed;
    }
  }
  request.dry_run = false;
  const BootTime start = context->clock.Sample().boot;
  // A user who interrupts it is told how far it came.
  const InterruptGuard guard;
  const Outcome outcome = RunSteps(api, action, request, filters, total, context);
  if (outcome.changed > 0 && !outcome.status.ok()) {
    // A delay counts from the command's begin, so to the next one these jobs are not where it wants
    // them.
    const bool moves_again = change.due && std::holds_alternative<DueAfter>(*change.due);
    const Status told = outcome.status.Followed(
        " (stopped when " + Jobs(outcome.changed) + " had been " + std::string(done) +
        "; the same command does what is left" +
        (moves_again ? ", and moves these again, to a later time, if they still fit the filter)"
                     : ")"));
    const ExitCode code = ExitCodeOf(told);
    context->console.Error(told);
    return code == kExitInterrupted ? code : kExitFailed;
  }
  DELAYD_RETURN_IF_ERROR(outcome.status);
  return TellChanged(outcome, done, context->clock.Sample().boot - start, context);
}

// For a filter without a state, which leaves dead jobs out.
void JobSelection::TellDead(Api* api,
                            const protocol::JobFilterText& filter,
                            Context* context) const {
  const bool words = !context->globals.quiet && context->globals.output == OutputFormat::kTable;
  const bool is_all_of_queue =
      filter.queue && !filter.key_prefix && !filter.due_before && !filter.due_after;
  if (!words || !is_all_of_queue || std::ranges::find(states_, JobState::kDead) == states_.end()) {
    return;
  }
  const StatusOr<protocol::QueueCounts> queue = api->Queue(*filter.queue);
  if (queue.ok() && queue->dead > 0) {
    context->console.Say("queue " + *filter.queue + " has " + std::to_string(queue->dead) +
                         (queue->dead == 1 ? " dead job" : " dead jobs") +
                         ", which this leaves alone; for those add --state dead");
  }
}

}  // namespace delayd::cli
