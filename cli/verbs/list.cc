#include <utility>

#include "base/limits.h"
#include "cli/job_output.h"
#include "cli/job_watch.h"
#include "cli/outage.h"
#include "cli/verbs/list_filter.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class ListVerb final : public Verb {
 public:
  std::string_view name() const override { return "list"; }

  std::string_view summary() const override { return "List jobs, soonest first"; }

  std::string_view details() const override {
    return "Payloads are not listed: see show and export. Without --limit, a list ends at 100\n"
           "jobs; stderr says so if there are more. -o json then has next_cursor, for the HTTP\n"
           "API; with the dead jobs of all queues also next_queue, the queue that it is about.\n"
           "On a terminal long names are cut to fit; -o wide shows them whole.\n"
           "\n"
           "--watch waits for a daemon that goes away. It watches the first jobs of a longer\n"
           "list: with -o jsonl, a job that moves up among them when others go has not appeared,\n"
           "and one that is now behind them is not gone.\n"
           "\n"
           "Examples:\n"
           "  delayctl list --queue orders --due-before 1h -o jsonl\n"
           "  delayctl list --state dead --queue orders --all -q\n"
           "  delayctl list --queue orders --watch -o jsonl";
  }

  void Declare(Options* options) override {
    filter_.Declare(options);
    options->Number("-n,--limit", 1, UINT64_MAX, &limit_, "at most this many (100)");
    options->Flag("-a,--all", &all_, "all that match");
    options->Flag("-w,--watch",
                  &watch_,
                  "look again every second: redraw on a terminal, changes with -o jsonl");
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const protocol::JobFilterText filter, filter_.Resolve());
    if (all_ && limit_.has_value()) {
      return UsageError("--all and --limit contradict each other; keep one");
    }
    DELAYD_RETURN_IF_ERROR(watch_ ? CanWatch(*context) : OkStatus());
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    return watch_ ? Watch(*api, filter, context) : Page(*api, filter, context);
  }

 private:
  StatusOr<ExitCode> Page(Api& api, const protocol::JobFilterText& filter, Context* context) const {
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::JobFilterText> filters,
                            Expand(api, filter));
    std::optional<JobListPrinter> printer;
    const auto print = [&](const std::vector<JobView>& jobs) {
      // Created only now, so that a failure leaves stdout empty.
      if (!printer.has_value()) {
        printer.emplace(context);
      }
      printer->Print(jobs);
      return context->console.CheckOut(false);  // stop when nobody reads the rest
    };
    DELAYD_ASSIGN_OR_RETURN(const ListEnd end, TakeJobs(api, filters, limit(), print));
    if (!printer.has_value()) {
      printer.emplace(context);  // no filter to ask: no queue has dead jobs
      printer->Print({});
    }
    printer->Finish(end.cursor, filter.queue.has_value() ? "" : end.queue);
    if (!end.cursor.empty()) {
      TellMore(context);
    }
    return kExitOk;
  }

  uint64_t limit() const { return all_ ? UINT64_MAX : limit_.value_or(limits::kListLimitDefault); }

  // A JSON document has next_cursor, and a limit that was asked for is no surprise. But programs
  // that read ids or lines would take them for all.
  void TellMore(Context* context) const {
    const bool ids = context->globals.quiet;
    const OutputFormat output = context->globals.output;
    if (!limit_.has_value() && (ids || output == OutputFormat::kJsonl)) {
      context->console.Error(MoreThan(limits::kListLimitDefault, "are listed"));
    } else if (!limit_.has_value() || context->console.traits().err_is_terminal) {
      context->console.Say("there are more; give --limit N or --all");
    }
  }

  static StatusOr<protocol::JobPage> Look(Api& api,
                                          const protocol::JobFilterText& filter,
                                          uint64_t limit) {
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::JobFilterText> filters,
                            Expand(api, filter));
    return FirstJobs(api, filters, limit);
  }

  // Whether the filter's times, which were checked when they were read, take a job due then.
  static bool TakesDue(const protocol::JobFilterText& filter, WallTime due, WallTime now) {
    return (!filter.due_before || due < *ParseTimeOrDuration(*filter.due_before, now)) &&
           (!filter.due_after || due >= *ParseTimeOrDuration(*filter.due_after, now));
  }

  // A job that is in the list, but beyond the watched part.
  static StatusOr<JobView> Find(Api& api,
                                const protocol::JobFilterText& filter,
                                JobId id,
                                const Context& context) {
    StatusOr<JobView> job = api.Show(id);
    if (!job.ok()) {
      return job;
    }
    const bool pending = job->state != JobState::kDead && job->state != JobState::kFinished;
    const bool listed =
        filter.state.has_value() ? *filter.state == JobStateName(job->state) : pending;
    return listed && TakesDue(filter, job->due, context.DaemonNow())
               ? std::move(job)
               : NotFound("it is not in the list");
  }

  // Watches until the user ends it. People watch for hours and a restart takes a moment, so a
  // daemon is waited for unless it has never answered.
  StatusOr<ExitCode> Watch(Api& api,
                           const protocol::JobFilterText& filter,
                           Context* context) const {
    const bool soonest_first = filter.state != JobStateName(JobState::kDead) &&
                               filter.state != JobStateName(JobState::kFinished);
    JobWatch watch(
        context, soonest_first, [&](JobId id) { return Find(api, filter, id, *context); });
    Outage outage(&context->console);
    Status seen;
    bool warned = limit_.has_value() || context->globals.output == OutputFormat::kTable;
    for (bool answered = false; seen.ok();) {
      StatusOr<protocol::JobPage> page = Look(api, filter, limit());
      if (!answered || !outage.MayWaitOut(page.status())) {
        if (!page.ok()) {
          return page.status();
        }
        answered = true;
        outage.Over();
        const bool more = !page->next_cursor.empty();
        if (more && !warned) {
          context->console.Warn(MoreThan(limit(), "are watched"));
          warned = true;
        }
        watch.Show(std::move(page->jobs), more);
        seen = context->console.CheckOut(true);
      }
      seen = seen.ok() ? context->Rest(kWatchEvery) : seen;
    }
    return seen;
  }

  static Status MoreThan(uint64_t limit, const std::string& what) {
    return ResourceExhausted("there are more jobs, and only the first " + std::to_string(limit) +
                                 " " + what + "; give --limit N or --all, or a filter",
                             "more_jobs");
  }

  static constexpr Millis kWatchEvery{1000};

  ListFilter filter_;
  std::optional<uint64_t> limit_;
  bool all_ = false;
  bool watch_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeList() {
  return std::make_unique<ListVerb>();
}

}  // namespace delayd::cli
