#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "base/limits.h"
#include "cli/human_time.h"
#include "cli/job_id_set.h"
#include "cli/progress.h"
#include "cli/verbs/list_filter.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class ExportVerb final : public Verb {
 public:
  std::string_view name() const override { return "export"; }

  std::string_view summary() const override { return "Write pending jobs as JSON Lines"; }

  std::string_view details() const override {
    return "One job a line, payload included, soonest first; import takes the lines as they are.\n"
           "Pending jobs are written, dead ones with --state dead. Finished ones, with --state\n"
           "finished, are for reading: import refuses them, since they would be done again.\n"
           "\n"
           "While jobs move: one that is there all the while is written once, as it was when it\n"
           "was met; some that moved meanwhile come last. Jobs that come or go meanwhile may be\n"
           "written or not; a key that went from one to another may stand with both. If jobs\n"
           "move faster than they can be looked for, stderr says so. For one moment, export a\n"
           "backup.\n"
           "\n"
           "Durations count from the moment at which the export began. The pause of a queue does\n"
           "not travel: paused queues are named at the end. Damaged jobs are reported and left\n"
           "out; the exit code is then 1.\n"
           "\n"
           "Examples:\n"
           "  delayctl export --queue orders > orders.jsonl\n"
           "  delayctl export --state dead > dead.jsonl";
  }

  void Declare(Options* options) override { filter_.Declare(options); }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    if (context->globals.quiet) {
      // Ids alone would be no export; whoever took them for one would have lost the jobs.
      return UsageError(
          "export has no -q; for ids alone: delayctl list --all -q; for no words: 2>/dev/null");
    }
    ListQuery query{.filter = {}, .with_payload = true, .limit = limits::kListLimitMax};
    DELAYD_ASSIGN_OR_RETURN(query.filter, filter_.Resolve());
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_RETURN_IF_ERROR(api->FixTimes({&query.filter.due_before, &query.filter.due_after}));
    Counts counts;
    Progress progress(&context->console, &context->clock, "jobs", 0);
    const Status status = WriteAll(*api, query, context, &progress, &counts);
    progress.Clear();
    if (!status.ok()) {
      return status.Followed(counts.looks == 0
                                 ? " (export stopped after " + Jobs(counts.written) + ")"
                                 : " (exported " + Jobs(counts.written) +
                                       ", but one that moved meanwhile may be missing)");
    }
    return Finish(*api, counts, context);
  }

 private:
  struct Counts {
    uint64_t written = 0;
    uint64_t damaged = 0;
    JobIdSet met;  // written, damaged or gone
    std::set<std::string> queues;
    int looks = 0;  // that came to their end
    bool is_settled = true;
    // Jobs that were there when it began. An import may bring old ones, and the clock may be set
    // back: so the id tells too.
    WallTime created_max = WallTime::max();
    JobId id_max{std::numeric_limits<uint64_t>::max()};
    JobId newest{};
  };

  // A list is no snapshot (decision 0058): a job that moved ahead of its cursor is met again, and
  // one that moved behind it is not. So it is looked through again for jobs that were there when
  // it began, until nothing moved or none is found; or nearly as many as by the look before, as
  // dead jobs do that are kicked all the while: there would be no end.
  static Status WriteAll(
      Api& api, ListQuery query, Context* context, Progress* progress, Counts* counts) {
    DELAYD_ASSIGN_OR_RETURN(const WallTime begun, api.Time());
    DELAYD_ASSIGN_OR_RETURN(std::vector<uint64_t> moves, MovesOf(api));
    DELAYD_RETURN_IF_ERROR(WriteUnmet(api, query, context, progress, counts).status());
    query.with_payload = false;
    counts->created_max = EndOf(begun);
    counts->id_max = counts->newest;
    // What comes into one state meanwhile was not in it when the export began.
    const int looks_max = !query.filter.state                ? std::numeric_limits<int>::max()
                          : query.filter.state == "finished" ? 1
                                                             : 2;
    size_t found_before = std::numeric_limits<size_t>::max();
    while (counts->looks < looks_max) {
      StatusOr<std::vector<uint64_t>> more = MovesOf(api);
      if (more.ok() && *more == moves) {
        return OkStatus();
      }
      moves = more.ok() ? *std::move(more) : std::vector<uint64_t>();
      DELAYD_ASSIGN_OR_RETURN(const size_t found,
                              WriteUnmet(api, query, context, progress, counts));
      if (found == 0) {
        return OkStatus();
      }
      if (found > found_before / 2) {
        counts->is_settled = false;
        return OkStatus();
      }
      found_before = found;
    }
    return OkStatus();
  }

  // An older daemon tells whole seconds, cut off.
  static WallTime EndOf(WallTime time) {
    const auto second = std::chrono::floor<std::chrono::seconds>(time);
    return time == second ? second + std::chrono::seconds(1) - Millis(1) : time;
  }

  // What rises whenever a job may have moved to where a list has been already: earlier, or from the
  // dead. All else that moves one makes it later.
  static StatusOr<std::vector<uint64_t>> MovesOf(Api& api) {
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::Stat> stats, api.Stats());
    std::vector<uint64_t> moves;
    for (const protocol::Stat& stat : stats) {
      const auto* count = std::get_if<uint64_t>(&stat.value);
      if (count != nullptr && (stat.name == "rescheduled" || stat.name == "kicked" ||
                               stat.name == "nacked" || stat.name == "epoch")) {
        moves.push_back(*count);
      }
    }
    return moves;
  }

  // How many it found that were not met before, although they must have been there when it began.
  // What may have been there is written too, and is no reason to look again.
  static StatusOr<size_t> WriteUnmet(
      Api& api, const ListQuery& query, Context* context, Progress* progress, Counts* counts) {
    size_t found = 0;
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::JobFilterText> filters,
                            Expand(api, query.filter));
    for (const protocol::JobFilterText& filter : filters) {
      ListQuery one = query;
      one.filter = filter;
      do {
        DELAYD_ASSIGN_OR_RETURN(protocol::JobPage page, api.List(one));
        std::erase_if(page.jobs, [&](const JobView& job) {
          const bool is_old = job.created <= counts->created_max;
          const bool is_low = job.id <= counts->id_max;
          const bool is_met = counts->met.Contains(job.id);
          found += is_old && is_low && !is_met ? 1U : 0U;
          return is_met || !(is_old || is_low);
        });
        DELAYD_RETURN_IF_ERROR(WritePage(api, std::move(page.jobs), context, progress, counts));
        one.cursor = std::move(page.next_cursor);
      } while (!one.cursor.empty());
    }
    ++counts->looks;
    return found;
  }

  static Status WritePage(
      Api& api, std::vector<JobView> jobs, Context* context, Progress* progress, Counts* counts) {
    for (JobView& job : jobs) {
      counts->met.Insert(job.id);
      counts->newest = std::max(counts->newest, job.id);
      if (!job.payload.has_value()) {
        DELAYD_ASSIGN_OR_RETURN(const bool is_there,
                                Complete(api, &job, context, progress, counts));
        if (!is_there) {
          continue;
        }
      }
      job.etag.clear();  // of this very job: an import begins another
      context->console.out() << protocol::JobToJson(job) << '\n';
      DELAYD_RETURN_IF_ERROR(context->console.CheckOut(false));
      ++counts->written;
      counts->queues.insert(job.queue);
      if (!context->console.traits().out_is_terminal) {  // or it would stand among the jobs
        progress->Update(counts->written, 0);
      }
    }
    return OkStatus();
  }

  // All that could be written is; what else there is to tell.
  static ExitCode Finish(Api& api, const Counts& counts, Context* context) {
    const std::string exported = "exported " + Jobs(counts.written);
    if (!counts.is_settled) {
      context->console.Warn(Status(StatusCode::kInternal,
                                   exported + ", but jobs came or moved during each of " +
                                       std::to_string(counts.looks) +
                                       " looks, and one that moved each time may be missing; for "
                                       "one moment, export a backup",
                                   "part_done"));
    }
    if (const Status told = TellPaused(api, counts.queues, context); !told.ok()) {
      context->console.Warn(
          told.WithContext(exported + "; which of their queues are paused could not be asked"));
    }
    if (counts.damaged > 0) {
      context->console.Say(exported + " and left out " + std::to_string(counts.damaged) +
                           " damaged ones; run 'delayctl verify'");
      return kExitFailed;
    }
    if (context->console.traits().err_is_terminal) {
      context->console.Say(exported);
    }
    return kExitOk;
  }

  // What was held back here would be handed out there as soon as it is imported.
  static Status TellPaused(Api& api, const std::set<std::string>& exported, Context* context) {
    if (exported.empty()) {
      return OkStatus();
    }
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::QueueCounts> queues, api.Queues());
    std::set<std::string> paused;
    for (const protocol::QueueCounts& queue : queues) {
      if (queue.paused && exported.contains(queue.name)) {
        paused.insert(queue.name);
      }
    }
    if (!paused.empty()) {
      context->console.Warn(FailedPrecondition(
          "paused here, and a pause does not travel: " + FirstOf(paused) +
              "; at the other daemon, before the import: delayctl pause QUEUE --create",
          "paused"));
    }
    return OkStatus();
  }

  // A job that was listed without its payload: damaged, or finished and kept without it. By itself
  // it says which. False: there is nothing to write.
  static StatusOr<bool> Complete(
      Api& api, JobView* job, Context* context, Progress* progress, Counts* counts) {
    StatusOr<JobView> shown = api.Show(job->id);
    // Whoever exports a damaged store wants the others all the more.
    if (shown.status().code() == StatusCode::kDataLoss) {
      progress->Clear();
      context->console.Error(shown.status());
      ++counts->damaged;
      return false;
    }
    // It ended meanwhile, unless that is what was asked for.
    if (shown.status().code() == StatusCode::kNotFound ||
        (shown.ok() && shown->state == JobState::kFinished && job->state != JobState::kFinished)) {
      return false;
    }
    DELAYD_RETURN_IF_ERROR(shown.status());
    *job = *std::move(shown);
    return true;
  }

  ListFilter filter_;
};

}  // namespace

std::unique_ptr<Verb> MakeExport() {
  return std::make_unique<ExportVerb>();
}

}  // namespace delayd::cli
