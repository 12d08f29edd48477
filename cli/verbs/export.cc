#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "cli/human_time.h"
#include "cli/job_id_set.h"
#include "cli/progress.h"
#include "cli/stat.h"
#include "cli/verbs/list_filter.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

// One export: the passes over the list that it takes, called looks, and the jobs they have met.
class Exporter {
 public:
  Exporter(Api* api, protocol::JobFilterText filter, Context* context)
      : api_(*api),
        filter_(std::move(filter)),
        console_(context->console),
        progress_(&console_, &context->clock, "jobs", 0) {}

  StatusOr<ExitCode> Run() {
    const Status status = WriteAll();
    progress_.Clear();
    if (!status.ok()) {
      return status.Followed(looks_ == 0 ? " (export stopped after " + Jobs(written_) + ")"
                                         : " (exported " + Jobs(written_) +
                                               ", but one that moved meanwhile may be missing)");
    }
    return Finish();
  }

 private:
  // A list is not a snapshot (decision 0058): a job that moves ahead of the cursor is met again,
  // and one that moves behind it is missed. So the list is searched again for jobs that were there
  // when the export began, until nothing has moved or none is found. It also stops when a look
  // finds more than half as many as the one before, as happens while dead jobs keep being kicked:
  // there would be no end.
  Status WriteAll() {
    DELAYD_ASSIGN_OR_RETURN(const WallTime begun, api_.Time());
    DELAYD_ASSIGN_OR_RETURN(Moves moves, MovesSoFar());
    DELAYD_RETURN_IF_ERROR(WriteUnmet(true).status());
    created_max_ = EndOf(begun);
    id_max_ = newest_;
    // A filter by state needs few looks: a job that enters the state meanwhile was not in it when
    // the export began.
    const int looks_max = !filter_.state                ? std::numeric_limits<int>::max()
                          : filter_.state == "finished" ? 1
                                                        : 2;
    size_t found_before = std::numeric_limits<size_t>::max();
    while (looks_ < looks_max) {
      StatusOr<Moves> more = MovesSoFar();
      if (more.ok() && *more == moves) {
        return OkStatus();
      }
      moves = more.ok() ? *std::move(more) : Moves();
      DELAYD_ASSIGN_OR_RETURN(const size_t found, WriteUnmet(false));
      if (found == 0) {
        return OkStatus();
      }
      if (found > found_before / 2) {
        is_settled_ = false;
        return OkStatus();
      }
      found_before = found;
    }
    return OkStatus();
  }

  // An older daemon tells its time in whole seconds, rounded down.
  static WallTime EndOf(WallTime time) {
    const auto second = std::chrono::floor<std::chrono::seconds>(time);
    return time == second ? second + std::chrono::seconds(1) - Millis(1) : time;
  }

  // Counters that rise whenever a job may have moved to where the list has already been: to an
  // earlier time, or out of the dead jobs. Every other move is to a later time.
  using Moves = std::vector<uint64_t>;

  StatusOr<Moves> MovesSoFar() {
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::Stat> stats, api_.Stats());
    Moves moves;
    for (const std::string_view counter : {"rescheduled", "kicked", "nacked", "epoch"}) {
      moves.push_back(StatNumber(stats, counter).value_or(0));
    }
    return moves;
  }

  // Writes the jobs not met before; returns how many of them must have been there when the export
  // began. Jobs that only may have been there are written too, but are no reason to look again.
  StatusOr<size_t> WriteUnmet(bool with_payload) {
    size_t found = 0;
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::JobFilterText> filters,
                            Expand(api_, filter_));
    const auto write = [&](std::vector<JobView> jobs) {
      std::erase_if(jobs, [&](const JobView& job) {
        const bool is_old = job.created <= created_max_;
        const bool is_low = job.id <= id_max_;
        const bool is_met = met_.Contains(job.id);
        found += is_old && is_low && !is_met ? 1U : 0U;
        return is_met || !(is_old || is_low);
      });
      return WritePage(std::move(jobs));
    };
    DELAYD_RETURN_IF_ERROR(TakeJobs(api_, filters, UINT64_MAX, write, with_payload).status());
    ++looks_;
    return found;
  }

  Status WritePage(std::vector<JobView> jobs) {
    for (JobView& job : jobs) {
      met_.Insert(job.id);
      newest_ = std::max(newest_, job.id);
      if (!job.payload.has_value()) {
        DELAYD_ASSIGN_OR_RETURN(const bool is_there, Complete(&job));
        if (!is_there) {
          continue;
        }
      }
      job.etag.clear();  // it belongs to this very job; an import creates another
      console_.out() << protocol::JobToJson(job) << '\n';
      DELAYD_RETURN_IF_ERROR(console_.CheckOut(false));
      ++written_;
      queues_.insert(job.queue);
      if (!console_.traits().out_is_terminal) {  // else it would appear among the jobs
        progress_.Update(written_, 0);
      }
    }
    return OkStatus();
  }

  // Fetches a job that was listed without its payload: it is damaged, or finished and kept without
  // it; asking for the job alone tells which. False when there is nothing to write.
  StatusOr<bool> Complete(JobView* job) {
    StatusOr<JobView> shown = api_.Show(job->id);
    // Whoever exports a damaged store wants the other jobs all the more.
    if (shown.status().code() == StatusCode::kDataLoss) {
      progress_.Clear();
      console_.Error(shown.status());
      ++damaged_;
      return false;
    }
    // Skip a job that ended meanwhile, unless finished jobs were asked for.
    if (shown.status().code() == StatusCode::kNotFound ||
        (shown.ok() && shown->state == JobState::kFinished && job->state != JobState::kFinished)) {
      return false;
    }
    DELAYD_RETURN_IF_ERROR(shown.status());
    *job = *std::move(shown);
    return true;
  }

  // All that could be written is written; reports the rest.
  ExitCode Finish() {
    const std::string exported = "exported " + Jobs(written_);
    if (!is_settled_) {
      console_.Warn(Status(StatusCode::kInternal,
                           exported + ", but jobs came or moved during each of " +
                               std::to_string(looks_) +
                               " looks, and one that moved each time may be missing; for "
                               "one moment, export a backup",
                           "part_done"));
    }
    if (const Status told = TellPaused(); !told.ok()) {
      console_.Warn(
          told.WithContext(exported + "; which of their queues are paused could not be asked"));
    }
    if (damaged_ > 0) {
      console_.Say(exported + " and left out " + std::to_string(damaged_) +
                   " damaged ones; run 'delayctl verify'");
      return kExitFailed;
    }
    if (console_.traits().err_is_terminal) {
      console_.Say(exported);
    }
    return kExitOk;
  }

  // Warns of paused queues: elsewhere their jobs would be handed out as soon as they are imported.
  Status TellPaused() {
    if (queues_.empty()) {
      return OkStatus();
    }
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::QueueCounts> queues, api_.Queues());
    std::set<std::string> paused;
    for (const protocol::QueueCounts& queue : queues) {
      if (queue.paused && queues_.contains(queue.name)) {
        paused.insert(queue.name);
      }
    }
    if (!paused.empty()) {
      console_.Warn(FailedPrecondition(
          "paused here, and a pause does not travel: " + FirstOf(paused) +
              "; at the other daemon, before the import: delayctl pause QUEUE --create",
          "paused"));
    }
    return OkStatus();
  }

  Api& api_;
  const protocol::JobFilterText filter_;
  Console& console_;
  Progress progress_;
  uint64_t written_ = 0;
  uint64_t damaged_ = 0;
  JobIdSet met_;                  // written, damaged or gone
  std::set<std::string> queues_;  // of the jobs written
  int looks_ = 0;                 // completed looks
  bool is_settled_ = true;
  // Bounds of the jobs that were there when the export began. An import may bring in old jobs, and
  // the clock may be set back, so the id counts as well as the creation time.
  WallTime created_max_ = WallTime::max();
  JobId id_max_{std::numeric_limits<uint64_t>::max()};
  JobId newest_{};
};

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
      // Ids alone are no export; a user who took them for one would lose the jobs.
      return UsageError(
          "export has no -q; for ids alone: delayctl list --all -q; for no words: 2>/dev/null");
    }
    DELAYD_ASSIGN_OR_RETURN(protocol::JobFilterText filter, filter_.Resolve());
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_RETURN_IF_ERROR(api->FixTimes({&filter.due_before, &filter.due_after}));
    return Exporter(api.get(), std::move(filter), context).Run();
  }

 private:
  ListFilter filter_;
};

}  // namespace

std::unique_ptr<Verb> MakeExport() {
  return std::make_unique<ExportVerb>();
}

}  // namespace delayd::cli
