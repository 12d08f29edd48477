#include <algorithm>

#include "cli/exec_handler.h"
#include "cli/process_name.h"
#include "cli/signal_relay.h"
#include "cli/verbs/verbs.h"
#include "cli/webhook_handler.h"
#include "cli/webhook_signature.h"
#include "cli/worker.h"
#include "protocol/nearest.h"
#include "protocol/tls.h"

#include <sys/resource.h>

namespace delayd::cli {
namespace {

constexpr uint64_t kConcurrencyMax = 1000;
constexpr Millis kWebhookTimeout{std::chrono::seconds(30)};

// A slot has a connection and an eventfd. Its handler has two pipes, both ends of which are open
// while it is started, and a pidfd. Besides, there are the standard three and those for signals.
constexpr rlim_t kFilesOfSlot = 7;
constexpr rlim_t kFilesBeside = 32;

// Shells set a limit of 1024 files for programs that cannot handle higher descriptors. Handlers
// inherit ours, so it is raised only when many slots need it. Without room for files, jobs would be
// given back as fast as they are leased.
Status MakeRoomForFiles(uint64_t slots) {
  const rlim_t wanted = kFilesBeside + slots * kFilesOfSlot;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
    return OkStatus();
  }
  if (limit.rlim_max < wanted) {
    return InvalidArgument("--concurrency " + std::to_string(slots) + " needs " +
                           std::to_string(wanted) + " open files, and no more than " +
                           std::to_string(limit.rlim_max) +
                           " are allowed here; raise that (ulimit -n, or LimitNOFILE= of the "
                           "service), or handle fewer jobs at a time");
  }
  limit.rlim_cur = wanted;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0
             ? OkStatus()
             : Internal("cannot raise the number of open files to " + std::to_string(wanted) +
                        "; handle fewer jobs at a time with --concurrency");
}

class WorkVerb final : public Verb {
 public:
  std::string_view name() const override { return "work"; }

  std::string_view summary() const override {
    return "Run a command or call a webhook for each due job";
  }

  std::string_view details() const override {
    return "--exec runs the command without a shell, with the payload on its stdin and\n"
           "DELAYD_JOB_ID, DELAYD_QUEUE, DELAYD_KEY, DELAYD_ATTEMPT, DELAYD_MAX_ATTEMPTS (0: no\n"
           "limit), DELAYD_DUE and DELAYD_LATENESS_MS in its environment. Exit 0 acks; 75 asks\n"
           "for a retry; 100 buries; anything else is a failed attempt, with the end of stderr\n"
           "as the job's last error. stderr ends with the command: processes that it leaves\n"
           "running get SIGPIPE when they write there, so let them write to a file of their\n"
           "own. The command has no terminal: asking there fails at once.\n"
           "DELAYD_JOB_ID names the job and not its content: enqueue --on-conflict replace keeps\n"
           "it.\n"
           "\n"
           "--webhook POSTs the payload, signed after Standard Webhooks (webhook-id,\n"
           "webhook-timestamp, webhook-signature), with the headers delayd-queue, delayd-key and\n"
           "delayd-key-encoded (if the job has one), delayd-attempt, delayd-max-attempts (0: no\n"
           "limit) and delayd-due (RFC 3339). If keys hold more than ASCII, or blanks at their\n"
           "ends, read delayd-key-encoded: the key, percent-encoded.\n"
           "\n"
           "2xx acks; 400, 405, 410, 411, 413, 414, 415, 422, 431, 451 and 501 bury. Anything\n"
           "else is a failed attempt, and so is a 2xx whose answer breaks off: its sender may\n"
           "not have finished its work. 429 and 503 may set the delay with Retry-After, up to\n"
           "24h. Redirects are not followed.\n"
           "\n"
           "Addresses of this machine and of private networks are refused unless --allow-private\n"
           "is given: at the start or, if a name points there, by giving the job back with no\n"
           "attempt used. A call whose receiver shows a certificate that is not trusted is given\n"
           "back in the same way.\n"
           "\n"
           "webhook-id (job_ID_HASH) is the same over all attempts, so a receiver can drop\n"
           "repetitions by it. Other content under the same id (enqueue --on-conflict replace)\n"
           "and jobs of another store have another one; the same content, pushed out again,\n"
           "keeps it.\n"
           "\n"
           "The lease is extended while a handler runs; a handler whose lease is over is\n"
           "stopped. SIGTERM, SIGHUP or Ctrl-C lets running handlers finish; a second one ends\n"
           "them and gives their jobs back with no attempt used. A daemon that restarts is\n"
           "waited for, and so is one that was never there, even with --drain.\n"
           "\n"
           "Exit code 2: at the start the command cannot be run, or the webhook's address is\n"
           "refused.\n"
           "\n"
           "Exit code 1: the daemon could not be told of a job that was done, for instance\n"
           "because a restart had ended all leases; the job is handed out again (or may be, if\n"
           "the answer was lost). This counts at any time with --count or --drain, and otherwise\n"
           "only after the signal to stop. With --count or --drain, also: the command has\n"
           "vanished while the worker runs, or the webhook's address or certificate is refused.\n"
           "That uses no attempt; without them it is tried again. With --drain, also: damaged\n"
           "jobs are left.\n"
           "\n"
           "Failed attempts, stopped handlers and jobs done only after the time of their lease\n"
           "are reported, and do not change the exit code.\n"
           "\n"
           "With -o json or jsonl, stdout has a line of JSON for each job; what commands write\n"
           "to stdout goes to stderr.\n"
           "\n"
           "Examples:\n"
           "  delayctl work --queue orders --exec ./cancel-order\n"
           "  delayctl work --queue mail --concurrency 8 --handler-timeout 1m --exec send-mail "
           "--html\n"
           "  delayctl work --queue orders --webhook https://shop.example/hooks/cancel "
           "--secret-file hook.secret";
  }

  void Declare(Options* options) override {
    options->Text("--queue", "QUEUE", &queue_, "the queue (default)");
    options->Rest(
        "--exec", "CMD [ARGS...]", &command_, "the command; all words behind it are its own");
    options->Text("--webhook", "URL", &webhook_url_, "POST each job to this URL");
    options->Text(
        "--secret-file",
        "FILE",
        &secret_file_,
        "sign calls with the whsec_ secrets in it, one a line, newest first; read at the start");
    options->Text("--content-type", "TYPE", &content_type_, "of calls (application/json)");
    options->Text("--webhook-ca-file",
                  "FILE",
                  &webhook_ca_file_,
                  "CAs to trust for the receiver, in place of the system's");
    options->Flag("--allow-private",
                  &webhook_.allow_private,
                  "let calls go to this machine and to private networks");
    options->Number("-j,--concurrency", 1, kConcurrencyMax, &concurrency_, "jobs at a time (1)");
    options->Duration("--lease", &work_.lease, "lease of each job (the job's own)");
    options->Duration("--handler-timeout",
                      &work_.handler_timeout,
                      "end a command (never) or a call (30s) after this long");
    options->Number("-n,--count", 1, UINT64_MAX, &work_.count, "stop after this many jobs");
    options->Flag("--drain", &work_.drain, "stop when no job is ready, or the queue is paused");
    options->Needs("(--webhook URL | --exec CMD [ARGS...])");
  }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_RETURN_IF_ERROR(Check(context->globals.output != OutputFormat::kTable));
    Worker worker(context, work_);
    {
      const SignalRelay relay(&worker);
      DELAYD_RETURN_IF_ERROR(relay.started());
      DELAYD_RETURN_IF_ERROR(worker.Run());
    }
    if (worker.undelivered() > 0 || worker.left_damaged()) {
      return kExitFailed;
    }
    return worker.abandoning() ? kExitInterrupted : kExitOk;
  }

 private:
  Status Check(bool json) {
    work_.queue = queue_.value_or(work_.queue);
    work_.client = ProcessName();
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(work_.queue));
    if (work_.handler_timeout == Millis(0)) {
      // Many programs take 0 for "never"; here each job would use up its attempts.
      return UsageError("--handler-timeout: 0 would end each handler as it begins; " +
                        std::string(webhook_url_.has_value() ? "give it a longer time"
                                                             : "leave it out for no limit"));
    }
    DELAYD_RETURN_IF_ERROR(webhook_url_.has_value() ? CheckWebhook() : CheckExec(json));
    work_.concurrency = static_cast<size_t>(concurrency_.value_or(1));
    return MakeRoomForFiles(work_.concurrency);
  }

  Status CheckExec(bool json) {
    if (command_.empty()) {
      return UsageError(
          "nothing is said about handling jobs; give --webhook URL, or end the line with --exec "
          "CMD [ARGS...]");
    }
    if (secret_file_.has_value() || content_type_.has_value() || webhook_ca_file_.has_value() ||
        webhook_.allow_private) {
      return UsageError(
          "--secret-file, --content-type, --webhook-ca-file and --allow-private belong to "
          "--webhook");
    }
    DELAYD_RETURN_IF_ERROR(CheckCommand(command_.front()));
    work_.make_handler = ExecHandler(command_, json);
    return OkStatus();
  }

  Status CheckWebhook() {
    if (!command_.empty()) {
      return UsageError("--webhook and --exec exclude each other; run two workers for two targets");
    }
    webhook_.url = *webhook_url_;
    DELAYD_RETURN_IF_ERROR(CheckWebhookUrl(webhook_.url, webhook_.allow_private));
    if (secret_file_.has_value()) {
      DELAYD_ASSIGN_OR_RETURN(webhook_.keys, ReadWebhookSecrets(*secret_file_));
    }
    if (webhook_ca_file_.has_value()) {
      DELAYD_RETURN_IF_ERROR(protocol::TlsContext::ForClient(*webhook_ca_file_).status());
      webhook_.ca_file = *webhook_ca_file_;
    }
    webhook_.content_type = content_type_.value_or(webhook_.content_type);
    // curl would drop a header without a value.
    if (webhook_.content_type.find_first_not_of(' ') == std::string::npos ||
        std::any_of(webhook_.content_type.begin(), webhook_.content_type.end(), [](char c) {
          return c < ' ' || c > '~';
        })) {
      return UsageError("--content-type: " + protocol::Quoted(webhook_.content_type) +
                        " is no media type; write it like application/json");
    }
    work_.handler_timeout = work_.handler_timeout.value_or(kWebhookTimeout);
    work_.make_handler = WebhookHandler(webhook_);
    return OkStatus();
  }

  WorkOptions work_;
  WebhookOptions webhook_;
  std::vector<std::string> command_;
  std::optional<std::string> webhook_url_;
  std::optional<std::string> secret_file_;
  std::optional<std::string> content_type_;
  std::optional<std::string> webhook_ca_file_;
  std::optional<std::string> queue_;
  std::optional<uint64_t> concurrency_;
};

}  // namespace

std::unique_ptr<Verb> MakeWork() {
  return std::make_unique<WorkVerb>();
}

}  // namespace delayd::cli
