#include <array>
#include <fstream>

#include "base/limits.h"
#include "base/size_text.h"
#include "base/time.h"
#include "cli/human_time.h"
#include "cli/verbs/verbs.h"
#include "protocol/job_json.h"
#include "protocol/nearest.h"

namespace delayd::cli {
namespace {

constexpr uint64_t kUint32Max = 0xffffffff;

class EnqueueVerb final : public Verb {
 public:
  std::string_view name() const override { return "enqueue"; }

  std::string_view summary() const override { return "Add a job that is due later"; }

  std::string_view details() const override {
    return "Prints the job's id once it is on disk. Without --in or --at it is due at once.\n"
           "\n"
           "With --key, doing it again gives the same job instead of a second one. If a job that\n"
           "is not finished has the key with other content, --on-conflict decides: fail\n"
           "(default, exit code 4), keep that job as it is, or replace its content and due time.\n"
           "replace begins the delay again, and is refused while a worker has the job.\n"
           "\n"
           "If the job with the key is finished, fail takes the same content for a retry:\n"
           "nothing is enqueued, and stderr says so, even with -q. Other content, keep and\n"
           "replace make a new job.\n"
           "\n"
           "Exit code 1: nothing was enqueued, because the daemon is draining, or the disk, the\n"
           "queue or your quota is full; or the answer was lost, and the message says so.\n"
           "\n"
           "Examples:\n"
           "  delayctl enqueue --in 30m --queue orders --key order:1001 '{\"order_id\":1001}'\n"
           "  delayctl enqueue --at 2027-01-01T09:00:00Z -q - < payload\n"
           "  delayctl enqueue --in 5s --queue index --key page:7 --on-conflict replace 'page 7'";
  }

  void Declare(Options* options) override {
    options->Positional("[PAYLOAD]", &payload_, "the payload (empty); - reads it from stdin");
    options->Text("-f,--file", "FILE", &file_, "read the payload from this file");
    options->Duration("--in", &in_, "due this long from now, on real time, as in 30m (at once)");
    options->Time(
        "--at", &at_, "due at this wall-clock time ('tomorrow 09:00', 2027-01-01T09:00:00Z)");
    options->Text("--queue", "QUEUE", &queue_, "the queue (default)");
    options->Text(
        "-k,--key", "KEY", &key_, "your own key: names the job, and makes this repeatable");
    options->Text("--on-conflict",
                  "RULE",
                  &on_conflict_,
                  "for a key that a live job has: fail (default), keep or replace",
                  {"fail", "keep", "replace"});
    options->Number("--priority", 0, kUint32Max, &priority_, "smaller is handed out first (1024)");
    options->Duration("--lease",
                      &lease_,
                      "how long a worker may hold it without a word (the queue's; 1m unless set)");
    options->Number("--max-attempts",
                    0,
                    kUint32Max,
                    &max_attempts_,
                    "hand-outs before it is dead, 0: no limit (the queue's; 25 unless set)");
    options->Duration("--expires-after",
                      &expires_after_,
                      "when it is this late, it becomes dead and is not handed out");
  }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(JobSpec spec, MakeSpec(context));
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    const StatusOr<protocol::EnqueuedJob> job = api->Enqueue(spec);
    if (!job.ok()) {
      return Explained(job.status());
    }
    Print(*job, context);
    return kExitOk;
  }

 private:
  Status Explained(const Status& status) const {
    std::string message = status.message();
    // Under the other conflict rules a job that was done meanwhile does not count, and repeating
    // would enqueue a second one.
    if (status.code() == StatusCode::kUnknown && key_.has_value() &&
        on_conflict_.value_or("fail") == "fail") {
      message += " (it has a key, so repeating it is safe)";
    }
    // The daemon's advice names a field of its API. rfind, because a key before it may contain it.
    constexpr std::string_view kField = "on_conflict";
    if (const size_t at = message.rfind(kField);
        status.reason() == "key_conflict" && at != std::string::npos) {
      message.replace(at, kField.size(), "--on-conflict");
    }
    // The message also names the member that held the payload.
    if (const size_t at = message.find("payload has ");
        status.reason() == "payload_too_large" && at != std::string::npos) {
      message.erase(0, at);
    }
    return status.WithMessage(std::move(message));
  }

  StatusOr<std::string> ReadPayload(Context* context) const {
    if (file_.has_value() && payload_.has_value()) {
      return UsageError("both PAYLOAD and --file are given; keep one");
    }
    std::ifstream file;
    std::istream* in = &context->in;
    if (file_.has_value() && *file_ != "-") {
      file.open(*file_, std::ios::binary);
      if (!file) {
        return InvalidArgument("cannot read payload file " + protocol::Quoted(*file_) +
                               "; check its name and rights");
      }
      in = &file;
    } else if (!file_.has_value() && payload_ != "-") {
      return payload_.value_or("");
    }
    // Bounded, in case the pipe is endless.
    std::string payload;
    std::array<char, 65536> chunk;  // NOLINT: filled by read
    while (payload.size() <= limits::kPayloadBytesHardMax && *in) {
      in->read(chunk.data(), chunk.size());
      payload.append(chunk.data(), static_cast<size_t>(in->gcount()));
    }
    if (in == &file && file.bad()) {
      return InvalidArgument("cannot read payload file " + protocol::Quoted(*file_) +
                             "; name a file, and no directory");
    }
    if (in->bad()) {
      return InvalidArgument("cannot read the payload; check the file or pipe");
    }
    if (payload.size() > limits::kPayloadBytesHardMax) {
      return ResourceExhausted("the payload has more than " +
                                   FormatSize(limits::kPayloadBytesHardMax) +
                                   "; store it elsewhere and send a reference",
                               "payload_too_large");
    }
    return payload;
  }

  StatusOr<OnConflict> MakeOnConflict() const {
    const std::optional<OnConflict> rule = ParseOnConflict(on_conflict_.value_or("fail"));
    if (!rule.has_value()) {
      return UsageError("--on-conflict: " + protocol::Quoted(*on_conflict_) +
                        " is unknown; use fail, keep or replace");
    }
    if (on_conflict_.has_value() && !key_.has_value()) {
      return UsageError("--on-conflict is about the job that has the key; give --key too");
    }
    return *rule;
  }

  StatusOr<JobSpec> MakeSpec(Context* context) const {
    if (in_.has_value() && at_.has_value()) {
      return UsageError(
          "both --in and --at are given; a job is due after a delay or at a time, keep one");
    }
    JobSpec spec;
    spec.queue = queue_.value_or(spec.queue);
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(spec.queue));
    if (key_.has_value()) {
      DELAYD_RETURN_IF_ERROR(ValidateKey(*key_));
      spec.key = *key_;
    }
    DELAYD_ASSIGN_OR_RETURN(spec.on_conflict, MakeOnConflict());
    if (at_.has_value()) {
      spec.due = DueAt{*at_};
    } else {
      spec.due = DueAfter{in_.value_or(Millis(0))};
    }
    if (priority_.has_value()) {
      spec.priority = static_cast<uint32_t>(*priority_);
    }
    if (max_attempts_.has_value()) {
      spec.max_attempts = static_cast<uint32_t>(*max_attempts_);
    }
    spec.lease = lease_;
    spec.expires_after = expires_after_;
    DELAYD_ASSIGN_OR_RETURN(spec.payload, ReadPayload(context));
    return spec;
  }

  // The id of a job that will not fire must not pass for one that will.
  static std::string OfEnded(const JobView& job, const Context& context) {
    const std::string id = std::to_string(ToInt(job.id));
    const std::string what = "job " + id + " in queue " + job.queue;
    return job.state == JobState::kDead
               ? what + " has this key and is dead; nothing was enqueued; bring it back with: " +
                     "delayctl kick " + id
               : what + " had this key and was " + job.outcome + " at " +
                     context.TimeText(job.finished.value_or(job.due)) +
                     "; nothing was enqueued; for a new job use --on-conflict keep or replace, or "
                     "another key";
  }

  // The Status with which the daemon refuses to change such a job.
  static Status RefusalOf(const JobView& job, const Context& context) {
    Status refusal = FailedPrecondition(OfEnded(job, context), JobStateName(job.state));
    if (job.state == JobState::kFinished) {
      refusal.AddDetail("outcome", job.outcome);
      refusal.AddDetail("finished", FormatUtc(job.finished.value_or(job.due)));
    }
    return refusal;
  }

  // Told with -q too, where stdout has nothing but the id.
  static void TellEnded(const JobView& job, Context* context) {
    if (context->globals.quiet) {
      context->console.Error(RefusalOf(job, *context));
    } else {
      context->console.Say(OfEnded(job, *context));
    }
  }

  void Print(const protocol::EnqueuedJob& enqueued, Context* context) const {
    const JobView& job = enqueued.job;
    if (!context->globals.quiet && context->globals.output != OutputFormat::kTable) {
      context->console.out() << protocol::EnqueuedToJson(enqueued) << '\n';
      return;
    }
    context->console.out() << ToInt(job.id) << '\n' << std::flush;
    // Other messages are for people at a terminal; scripts get the id alone.
    if (enqueued.existed && (job.state == JobState::kFinished || job.state == JobState::kDead)) {
      TellEnded(job, context);
    } else if (context->console.traits().err_is_terminal) {
      const WallTime now = context->DaemonNow();
      const std::string id = std::to_string(ToInt(job.id));
      context->console.Say("job " + id + " in queue " + job.queue +
                           (enqueued.existed && on_conflict_ == "replace" ? " is replaced, "
                            : enqueued.existed                            ? " was there already, "
                                                                          : ", ") +
                           "due " + FromNow(job.due, now) + " (" + context->TimeText(job.due) +
                           "); take it back with: delayctl cancel " + id);
    }
  }

  std::optional<std::string> payload_;
  std::optional<std::string> file_;
  std::optional<Millis> in_;
  std::optional<WallTime> at_;
  std::optional<std::string> queue_;
  std::optional<std::string> key_;
  std::optional<std::string> on_conflict_;
  std::optional<uint64_t> priority_;
  std::optional<Millis> lease_;
  std::optional<uint64_t> max_attempts_;
  std::optional<Millis> expires_after_;
};

}  // namespace

std::unique_ptr<Verb> MakeEnqueue() {
  return std::make_unique<EnqueueVerb>();
}

}  // namespace delayd::cli
