#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/limits.h"
#include "cli/human_time.h"
#include "cli/importer.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "cli/verbs/import_beanstalkd.h"
#include "cli/verbs/verbs.h"
#include "protocol/json_writer.h"
#include "protocol/nearest.h"

#include <sys/stat.h>

namespace delayd::cli {
namespace {

// How long lines of a pipe wait for a full batch. A job's delay begins only when it is sent.
constexpr Millis kGatherTime{200};

// The daemon reads one and writes one to disk, while one is prepared here.
constexpr size_t kBatchesUnderWay = 3;

uint64_t FileBytes(const std::string& path) {
  struct stat info {};

  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)
             ? static_cast<uint64_t>(info.st_size)
             : 0;
}

// Whether a file ends in half a line, as a full disk or a kill leaves it.
bool EndsInHalfALine(const std::string& path) {
  if (FileBytes(path) == 0) {
    return false;
  }
  std::ifstream file(path, std::ios::binary);
  file.seekg(-1, std::ios::end);
  char last = 0;
  return file.get(last) && last != '\n';
}

bool WillNotFire(const JobView& job) {
  return job.state == JobState::kFinished || job.state == JobState::kDead;
}

// ", 2 of them finished and 1 dead: not enqueued"
std::string EndedOf(const ImportCounts& counts) {
  std::string text;
  for (const auto& [count, what] :
       {std::pair(counts.finished, "finished"), std::pair(counts.dead, "dead")}) {
    if (count > 0) {
      text += (text.empty() ? ", " : " and ") + std::to_string(count) +
              (text.empty() ? " of them " : " ") + what;
    }
  }
  return text.empty() ? text : text + ": not enqueued";
}

class ImportVerb final : public Verb {
 public:
  std::string_view name() const override { return "import"; }

  std::string_view summary() const override {
    return "Enqueue jobs from JSON Lines, or from a running beanstalkd";
  }

  std::string_view details() const override {
    return "Each line is a job: queue, delay (\"30m\") or due (\"2027-01-01T09:00:00Z\"),\n"
           "payload or payload_base64, key, priority, lease, max_attempts, expires_after. It\n"
           "takes the lines of export as they are; those of list have no payloads and are\n"
           "refused. Lines from a pipe are sent when nothing more comes for 200ms, even if\n"
           "the batch is not full.\n"
           "\n"
           "It stops at the first bad line, with everything before it safely enqueued, and\n"
           "says how to resume. Lines with keys may be imported again without harm: a job\n"
           "that is there is counted, even one that is finished or dead and will not fire.\n"
           "If the connection breaks they are sent again, unless on_conflict is keep or\n"
           "replace: a job finished meanwhile would come again. At a quota it waits until\n"
           "workers have made room, up to --retry-for at each line. Where there is still no room\n"
           "after that, it ends, even with --continue.\n"
           "\n"
           "--from-beanstalkd moves the jobs of that server here, with tube, priority, time\n"
           "to run and what is left of their delay. Buried jobs stay buried. A tube that is\n"
           "paused there is paused here for the time left, before its jobs come.\n"
           "\n"
           "A job is deleted there only when it is durable here. If anything dies on the\n"
           "way, run it again: what is here already, done or not, does not come twice while\n"
           "its key is kept (key_retention). But if that server was restarted in between,\n"
           "its jobs have other names, and up to 200 may come twice. While it waits for room\n"
           "here or for a daemon, up to --retry-for, it holds no job there. Jobs of a full\n"
           "queue wait until all others are moved; if there is no room then, they are left\n"
           "and counted.\n"
           "\n"
           "It goes on as long as jobs come in there. Jobs that workers there have reserved\n"
           "are left and counted: exit code 1. So are jobs larger than limits.payload: they\n"
           "are buried there while it runs, and put back as they were at its end. An import\n"
           "that was killed leaves them buried; the next one names them, and kick-job there\n"
           "frees them.\n"
           "\n"
           "Ctrl-C ends an import after the jobs under way, and it says how to go on. For a\n"
           "daemon that hangs it then waits 2s, or all of --timeout if lines sent again\n"
           "would be doubled. A second Ctrl-C ends it at once.\n"
           "\n"
           "Examples:\n"
           "  delayctl import orders.jsonl\n"
           "  delayctl import --continue --skip 5000 - < orders.jsonl\n"
           "  delayctl import --from-beanstalkd 127.0.0.1:11300";
  }

  void Declare(Options* options) override {
    options->Positional("[FILE]", &file_, "the file; - or nothing reads stdin");
    options->Number(
        "--batch", 1, limits::kEnqueueBatchJobsMax, &batch_, "jobs in one request (500)");
    options->Flag("--continue", &keep_going_, "report bad lines and go on; exit code 1");
    options->Number("--skip", 0, UINT64_MAX, &skip_, "begin behind this many lines");
    options->Duration(
        "--retry-for", &retry_for_, "wait this long for a daemon that is away, or for room (30s)");
    options->Text(
        "--from-beanstalkd", "ADDRESS", &beanstalkd_, "drain this server: HOST:PORT or unix:PATH");
    options->Text(
        "--ack-log", "FILE", &ack_log_path_, "append a JSON line per job that was acknowledged");
  }

  StatusOr<ExitCode> Run(Context* context) override {
    if (beanstalkd_.has_value()) {
      DELAYD_RETURN_IF_ERROR(CheckFromBeanstalkd());
      return ImportFromBeanstalkd(*beanstalkd_, retry_for_.value_or(kRetryForDefault), context);
    }
    DELAYD_RETURN_IF_ERROR(Open(context));
    std::vector<std::unique_ptr<Api>> connections;
    std::vector<Api*> lanes;
    while (lanes.size() < kBatchesUnderWay) {
      DELAYD_ASSIGN_OR_RETURN(std::unique_ptr<Api> api, context->OpenApi(kImportTimeout));
      api->UseShortAnswers();
      lanes.push_back(api.get());
      connections.push_back(std::move(api));
    }
    const bool from_file = file_.has_value() && *file_ != "-";
    Progress progress(
        &context->console, &context->clock, "jobs", from_file ? FileBytes(*file_) : 0);
    const InterruptGuard guard;  // lives until the batches under way have ended
    Importer importer(lanes, &context->clock, ImportOptionsOf(), MakeHooks(context, &progress));
    LineReader reader = ReaderOf(context, &importer);
    // If the reader of the ids goes away, the import must still say how to resume.
    signal(SIGPIPE, SIG_IGN);
    const bool among_ids = context->globals.quiet && context->console.traits().out_is_terminal;
    const Status status = Pump(&reader, &importer, among_ids ? nullptr : &progress);
    progress.Clear();
    return Conclude(status, importer.counts(), progress.elapsed(), context);
  }

 private:
  Status CheckFromBeanstalkd() const {
    if (file_.has_value() || ack_log_path_.has_value() || skip_.has_value() || batch_.has_value() ||
        keep_going_) {
      return UsageError(
          "--from-beanstalkd takes no FILE, --ack-log, --skip, --batch or --continue; "
          "leave them out");
    }
    return OkStatus();
  }

  Status Open(Context* context) {
    if (!file_.has_value() && context->in_is_terminal) {
      return UsageError("no FILE is given and stdin is a terminal; name a file, or - to type");
    }
    fd_ = context->in_fd;
    if (file_.has_value() && *file_ != "-") {
      fd_ = open(file_->c_str(), O_RDONLY | O_CLOEXEC);
      if (fd_ < 0) {
        return InvalidArgument("cannot read " + protocol::Quoted(*file_) +
                               "; check its name and rights");
      }

      struct stat kind {};

      if (fstat(fd_, &kind) == 0 && S_ISDIR(kind.st_mode)) {
        return InvalidArgument("cannot read " + protocol::Quoted(*file_) +
                               ": it is a directory; name a file");
      }
    }
    if (ack_log_path_.has_value()) {
      ack_log_.open(*ack_log_path_, std::ios::binary | std::ios::app);
      if (!ack_log_) {
        return InvalidArgument("cannot write the ack log " + protocol::Quoted(*ack_log_path_) +
                               "; check its directory and rights");
      }
      if (EndsInHalfALine(*ack_log_path_)) {
        ack_log_ << '\n';
      }
    }
    return OkStatus();
  }

  // Reads the file descriptor where there is one: a stream would wait on, whatever signal comes.
  LineReader ReaderOf(Context* context, Importer* importer) {
    if (fd_ < 0) {
      return LineReader(context->in);
    }
    flushed_at_ = context->clock.Sample().boot;
    return LineReader([this, context, importer](char* to, size_t bytes_max) -> StatusOr<size_t> {
      FlushIfSilent(context->clock, importer);
      DELAYD_RETURN_IF_ERROR(flushed_);
      return InterruptGuard::Read(fd_, to, bytes_max);
    });
  }

  // Flushes when no more input comes for kGatherTime. That is counted from the last flush, not the
  // last line, since a producer may write a line every 100 ms.
  void FlushIfSilent(const Clock& clock, Importer* importer) {
    const Millis gathered = clock.Sample().boot - flushed_at_;
    if (InterruptGuard::IsSilent(fd_, std::max(kGatherTime - gathered, Millis(0)))) {
      flushed_ = importer->Flush();
      flushed_at_ = clock.Sample().boot;
    }
  }

  ImportOptions ImportOptionsOf() const {
    ImportOptions options;
    options.batch_jobs = static_cast<size_t>(batch_.value_or(options.batch_jobs));
    options.keep_going = keep_going_;
    options.skip = skip_.value_or(0);
    options.retry_for = retry_for_.value_or(options.retry_for);
    options.give_up_fd = InterruptGuard::fd();
    return options;
  }

  Importer::Hooks MakeHooks(Context* context, Progress* progress) {
    Importer::Hooks hooks;
    hooks.sleep = InterruptGuard::Nap;
    hooks.bad_line = [context, progress](const Status& status) {
      progress->Clear();
      context->console.Error(status);
    };
    hooks.warn = [context, progress](const Status& status) {
      progress->Clear();
      context->console.Warn(status);
    };
    hooks.acknowledged = [this, context](uint64_t line, const protocol::EnqueuedJob& job) {
      if (context->globals.quiet) {
        context->console.out() << ToInt(job.job.id) << '\n';
      }
      return LogAck(line, job);
    };
    hooks.batch_done = [this, context] {
      ack_log_.flush();
      DELAYD_RETURN_IF_ERROR(CheckAckLog());
      return context->console.CheckOut(true);
    };
    return hooks;
  }

  Status LogAck(uint64_t line, const protocol::EnqueuedJob& job) {
    if (!ack_log_path_.has_value()) {
      return OkStatus();
    }
    protocol::JsonObjectWriter writer;
    writer.Number("line", line);
    writer.Number("id", ToInt(job.job.id));
    writer.String("key", job.job.key);
    writer.Bool("existed", job.existed);
    if (job.existed && WillNotFire(job.job)) {
      writer.String("state", JobStateName(job.job.state));
      if (!job.job.outcome.empty()) {
        writer.String("outcome", job.job.outcome);
      }
    }
    ack_log_ << writer.Take() << '\n';
    return CheckAckLog();
  }

  Status CheckAckLog() {
    if (ack_log_path_.has_value() && !ack_log_.good()) {
      return Internal("cannot write the ack log " + protocol::Quoted(*ack_log_path_) +
                      "; is the disk full?");
    }
    return OkStatus();
  }

  Status CheckSkip(uint64_t lines) const {
    if (lines >= skip_.value_or(0)) {
      return OkStatus();
    }
    return UsageError("--skip: the input ends behind line " + std::to_string(lines) +
                      "; is it the same file, and whole?");
  }

  Status Pump(LineReader* reader, Importer* importer, Progress* progress) {
    for (;;) {
      const StatusOr<std::optional<std::string>> line = reader->Next();
      DELAYD_RETURN_IF_ERROR(flushed_);
      if (InterruptGuard::interrupted()) {
        // Gathered lines are not sent: a user who interrupts wants the import to end. But what is
        // under way is counted, printed and logged.
        return importer->SettleAll();
      }
      if (!line.ok() && line.status().code() != StatusCode::kResourceExhausted) {
        DELAYD_RETURN_IF_ERROR(importer->Flush());
        return line.status();
      }
      if (line.ok() && !line->has_value()) {
        DELAYD_RETURN_IF_ERROR(importer->Flush());
        return CheckSkip(reader->number());
      }
      const uint64_t number = reader->number();
      if (number <= skip_.value_or(0)) {
        continue;
      }
      DELAYD_RETURN_IF_ERROR(line.ok() ? importer->AddLine(number, **line)
                                       : importer->AddBadLine(number, line.status()));
      if (progress != nullptr) {
        progress->Update(importer->counts().imported, reader->bytes_read());
      }
    }
  }

  std::string Summary(const ImportCounts& counts, Millis elapsed) const {
    std::string text = "imported " + Jobs(counts.imported);
    if (counts.existed > 0) {
      text += " (" + std::to_string(counts.existed) + " " + std::string(WasOrWere(counts.existed)) +
              " there already" + EndedOf(counts) + ")";
    }
    text += " in " + RoughDuration(elapsed) + ", " + Rate(counts.imported, elapsed);
    if (counts.bad_lines > 0) {
      text += "; bad lines left out: " + std::to_string(counts.bad_lines);
    }
    return text;
  }

  static std::string HowToResume(const ImportCounts& counts) {
    if (counts.settled_line == 0) {
      return "no line is known to be enqueued, run it again from the first";
    }
    const std::string settled = std::to_string(counts.settled_line);
    return "the lines up to " + settled + " are enqueued, resume with --skip " + settled;
  }

  StatusOr<ExitCode> Conclude(const Status& status,
                              const ImportCounts& counts,
                              Millis elapsed,
                              Context* context) const {
    if (!context->globals.quiet && context->globals.output != OutputFormat::kTable) {
      protocol::JsonObjectWriter writer;
      writer.Number("imported", counts.imported);
      writer.Number("existed", counts.existed);
      writer.Number("finished", counts.finished);
      writer.Number("dead", counts.dead);
      writer.Number("bad_lines", counts.bad_lines);
      writer.Number("elapsed_ms", static_cast<uint64_t>(elapsed.count()));
      writer.Number("settled_line", counts.settled_line);
      context->console.out() << writer.Take() << '\n';
    }
    context->console.Say(Summary(counts, elapsed));
    if (InterruptGuard::interrupted() && (status.ok() || status.reason() == "interrupted")) {
      return Unavailable("interrupted; " + HowToResume(counts), "interrupted");
    }
    if (!status.ok()) {
      // An unknown outcome already says how to resume; a wrong --skip cannot be resumed from.
      const bool explained = status.code() == StatusCode::kUnknown || status.reason() == "usage";
      const Status told = explained ? status : status.Followed(" (" + HowToResume(counts) + ")");
      if (!InterruptGuard::interrupted()) {
        return told;
      }
      context->console.Error(told);
      return kExitInterrupted;
    }
    return counts.bad_lines > 0 ? kExitFailed : kExitOk;
  }

  std::optional<std::string> file_;
  std::optional<uint64_t> batch_;
  bool keep_going_ = false;
  std::optional<uint64_t> skip_;
  std::optional<Millis> retry_for_;
  std::optional<std::string> beanstalkd_;
  std::optional<std::string> ack_log_path_;
  int fd_ = -1;  // the input; closed when the process ends
  BootTime flushed_at_{};
  Status flushed_;  // the result of the flush while the input was silent
  std::ofstream ack_log_;
};

}  // namespace

std::unique_ptr<Verb> MakeImport() {
  return std::make_unique<ImportVerb>();
}

}  // namespace delayd::cli
