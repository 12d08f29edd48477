// ack, nack, bury and extend: the verbs on a lease.
#include "cli/human_time.h"
#include "cli/verbs/job_refs.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class LeaseChangeVerb : public Verb {
 public:
  LeaseChangeVerb(std::string_view name,
                  std::string_view summary,
                  std::string_view details,
                  std::string_view done)
      : name_(name), summary_(summary), details_(details), done_(done) {}

  std::string_view name() const override { return name_; }

  std::string_view summary() const override { return summary_; }

  std::string_view details() const override { return details_; }

  void Declare(Options* options) override {
    options->Positionals("TOKEN...", &tokens_, "lease tokens, as lease printed them");
    if (name_ == "nack") {
      options->Duration("--delay", &delay_, "hand it out again after this long (backoff)");
    }
    if (name_ == "nack" || name_ == "bury") {
      options->Text("--error", "TEXT", &error_, "why; kept as the job's last error");
    }
    if (name_ == "extend") {
      options->Duration("--lease", &lease_, "ends this long from now (the job's own lease)");
    }
  }

  StatusOr<ExitCode> Run(Context* context) override {
    if (tokens_.empty()) {
      return UsageError("no lease is named; give the TOKEN that lease printed");
    }
    // For the messages alone: a lease is named by its token.
    std::vector<JobRef> refs;
    for (const std::string& text : tokens_) {
      DELAYD_ASSIGN_OR_RETURN(const LeaseToken token, ParseLeaseToken(text));
      refs.emplace_back(token.job);
    }
    protocol::LeaseChange change;
    change.delay = delay_;
    change.lease = lease_;
    change.error = error_.value_or("");
    size_t next = 0;
    return ForEachJob(
        refs,
        [&](Api* api, const JobRef&) { return api->ChangeLease(tokens_[next++], name_, change); },
        [&](const JobView& job) {
          std::string line = std::string(done_) + " job " + std::to_string(ToInt(job.id)) +
                             " in queue " + job.queue;
          if (job.state == JobState::kScheduled) {
            line += ", due again " + FromNow(job.due, context->DaemonNow());
          } else if (job.state == JobState::kDead) {
            line += ", it is dead";
          }
          context->console.Words(line);
        },
        context);
  }

 private:
  std::string_view name_;
  std::string_view summary_;
  std::string_view details_;
  std::string_view done_;
  std::vector<std::string> tokens_;
  std::optional<Millis> delay_;
  std::optional<Millis> lease_;
  std::optional<std::string> error_;
};

}  // namespace

std::unique_ptr<Verb> MakeAck() {
  return std::make_unique<LeaseChangeVerb>("ack",
                                           "Finish leased jobs: their work is done",
                                           "Example:\n  delayctl ack 4711-3-1f",
                                           "acked");
}

std::unique_ptr<Verb> MakeNack() {
  return std::make_unique<LeaseChangeVerb>(
      "nack",
      "Give leased jobs back to be tried again",
      "A job whose attempts are used up becomes dead.\n\nExample:\n"
      "  delayctl nack 4711-3-1f --delay 5m --error 'shop is down'",
      "nacked");
}

std::unique_ptr<Verb> MakeBury() {
  return std::make_unique<LeaseChangeVerb>(
      "bury",
      "Declare leased jobs dead, whatever attempts are left",
      "Example:\n  delayctl bury 4711-3-1f --error 'no such order'",
      "buried");
}

std::unique_ptr<Verb> MakeExtend() {
  return std::make_unique<LeaseChangeVerb>("extend",
                                           "Keep leased jobs for longer",
                                           "Example:\n  delayctl extend 4711-3-1f --lease 5m",
                                           "extended the lease of");
}

}  // namespace delayd::cli
