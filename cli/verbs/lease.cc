#include "base/clock.h"
#include "base/limits.h"
#include "cli/human_time.h"
#include "cli/job_output.h"
#include "cli/process_name.h"
#include "cli/table.h"
#include "cli/verbs/verbs.h"
#include "protocol/duration.h"

namespace delayd::cli {
namespace {

class LeaseVerb final : public Verb {
 public:
  std::string_view name() const override { return "lease"; }

  std::string_view summary() const override { return "Take due jobs to work on them by hand"; }

  std::string_view details() const override {
    return "Ack, nack or bury each by its token before the lease ends. -q prints the tokens. On\n"
           "a terminal long keys are cut to fit; -o wide shows them whole.\n"
           "\n"
           "Exit code 5: the daemon was stopped meanwhile. 6: no job was ready in time; if the\n"
           "queue is paused or at its cap, the message says so.\n"
           "\n"
           "Example:\n"
           "  delayctl lease --queue orders --wait 20s -o jsonl";
  }

  void Declare(Options* options) override {
    options->Text("--queue", "QUEUE", &queue_, "the queue (default)");
    options->Number("-n,--count", 1, limits::kLeaseCountMax, &count_, "at most this many (1)");
    options->Duration("--wait", &wait_, "wait this long for a job (0)");
    options->Duration("--lease", &lease_, "how long they are yours (the job's own)");
  }

  StatusOr<ExitCode> Run(Context* context) override {
    const std::string queue = queue_.value_or("default");
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(queue));
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    protocol::LeaseRequest request;
    request.count = static_cast<uint32_t>(count_.value_or(1));
    request.wait = wait_.value_or(Millis(0));
    request.lease = lease_;
    request.client = ProcessName();
    const BootTime asked = SystemClock().Sample().boot;
    DELAYD_ASSIGN_OR_RETURN(const std::vector<JobView> jobs, api->Lease(queue, request));
    Print(jobs, context);
    // On another machine a millisecond begins at another moment, and the clock may be a bit faster.
    const Millis waited = SystemClock().Sample().boot - asked + Millis(2) + request.wait / 1000;
    if (jobs.empty() && waited < request.wait) {
      return Unavailable("the daemon ended the wait for a job in queue " + queue +
                         ": it is being stopped; ask again when it is back");
    }
    if (jobs.empty()) {
      return DeadlineExceeded(WhyNone(api->Queue(queue), queue, request.wait));
    }
    return kExitOk;
  }

 private:
  // `counts` are the queue's, if the daemon tells them.
  static std::string WhyNone(const StatusOr<protocol::QueueCounts>& counts,
                             const std::string& queue,
                             Millis waited) {
    const std::string none =
        "no job in queue " + queue + " was ready within " + protocol::FormatDuration(waited);
    if (counts.status().code() == StatusCode::kNotFound) {
      return none +
             ": it never had any, or was forgotten when it was empty; see delayctl queues, "
             "or wait longer with --wait";
    }
    if (!counts.ok() || (counts->ready == 0 && !counts->paused)) {
      return none + "; wait longer with --wait";
    }
    if (counts->ready != 0 && counts->sound() == 0) {
      return DamagedQueue(queue, counts->damaged);
    }
    if (counts->paused) {
      return PausedQueue(queue, counts->sound(), counts->pause_left);
    }
    const std::string ready = Jobs(counts->sound()) + " ready";
    if (counts->concurrency > 0 && counts->leased >= counts->concurrency) {
      return "queue " + queue + " has " + ready + ", and as many leased as its cap allows (" +
             std::to_string(counts->concurrency) +
             "); wait longer with --wait, or raise its concurrency";
    }
    if (!counts->rate.empty()) {
      return "queue " + queue + " has " + ready + ", and its rate is " + counts->rate +
             "; wait longer with --wait, or raise its rate";
    }
    return none + "; wait longer with --wait";
  }

  static constexpr size_t kKeyColumn = 1;

  static void Print(const std::vector<JobView>& jobs, Context* context) {
    std::ostream& out = context->console.out();
    if (!context->globals.quiet && context->globals.output == OutputFormat::kJson) {
      out << protocol::JobPageToJson({.jobs = jobs, .next_cursor = {}}) << '\n';
      return;
    }
    Table table({"ID", "KEY", "ATTEMPT", "LATE", "TOKEN", "PAYLOAD"});
    for (const JobView& job : jobs) {
      const std::string token =
          job.lease_token.has_value() ? FormatLeaseToken(*job.lease_token) : "";
      if (context->globals.quiet) {
        out << token << '\n';
      } else if (context->globals.output == OutputFormat::kJsonl) {
        out << protocol::JobToJson(job) << '\n';
      } else {
        table.Add({std::to_string(ToInt(job.id)),
                   job.key,
                   std::to_string(job.attempt),
                   protocol::FormatDuration(job.lateness.value_or(Millis(0))),
                   token,
                   job.payload.value_or("")});
      }
    }
    if (!context->globals.quiet && context->globals.output == OutputFormat::kTable &&
        !jobs.empty()) {
      if (context->CutsNames()) {
        table.FitColumns({kKeyColumn}, context->console.traits().width, kNameWidthMin);
      }
      table.Flush(&context->console);
    }
  }

  std::optional<std::string> queue_;
  std::optional<uint64_t> count_;
  std::optional<Millis> wait_;
  std::optional<Millis> lease_;
};

}  // namespace

std::unique_ptr<Verb> MakeLease() {
  return std::make_unique<LeaseVerb>();
}

}  // namespace delayd::cli
