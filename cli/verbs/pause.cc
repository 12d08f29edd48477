// pause and resume.
#include "cli/human_time.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

ExitCode Print(const StatusOr<protocol::QueueCounts>& queue, Context* context) {
  if (!queue.ok()) {
    return context->Fail(queue.status());
  }
  std::ostream& out = context->console.out();
  if (context->globals.output != OutputFormat::kTable) {
    out << protocol::QueueToJson(*queue) << '\n';
    return kExitOk;
  }
  if (context->globals.quiet) {
    return kExitOk;
  }
  out << "queue " << queue->name;
  if (!queue->paused) {
    out << " hands out again";
  } else if (queue->pause_left.has_value()) {
    out << " is paused for " << RoughDuration(*queue->pause_left);
  } else {
    out << " is paused until it is resumed";
  }
  out << ": " << queue->ready << " ready, " << queue->leased << " leased, " << queue->scheduled
      << " scheduled\n";
  return kExitOk;
}

StatusOr<std::string> QueueOf(const std::optional<std::string>& queue) {
  if (!queue.has_value()) {
    return UsageError("no queue is named; give its name");
  }
  DELAYD_RETURN_IF_ERROR(ValidateQueueName(*queue));
  return *queue;
}

class PauseVerb final : public Verb {
 public:
  std::string_view name() const override { return "pause"; }

  std::string_view summary() const override { return "Stop a queue from handing out jobs"; }

  std::string_view details() const override {
    return "Jobs still come in and fall due; leased ones go on. A pause outlives restarts.\n"
           "\n"
           "Examples:\n"
           "  delayctl pause orders\n"
           "  delayctl pause orders --for 10m";
  }

  void Declare(Options* options) override {
    options->Positional("QUEUE", &queue_, "the queue");
    options->Duration("--for", &duration_, "end by itself after this long");
    options->Flag("--create", &create_, "also a queue that no job was ever put into");
  }

  ExitCode Run(Context* context) override {
    const StatusOr<std::string> queue = QueueOf(queue_);
    if (!queue.ok()) {
      return context->Fail(queue.status());
    }
    StatusOr<std::unique_ptr<Api>> api = context->OpenApi();
    if (!api.ok()) {
      return context->Fail(api.status());
    }
    return Print((*api)->Pause(*queue, {.duration = duration_, .create = create_}), context);
  }

 private:
  std::optional<std::string> queue_;
  std::optional<Millis> duration_;
  bool create_ = false;
};

class ResumeVerb final : public Verb {
 public:
  std::string_view name() const override { return "resume"; }

  std::string_view summary() const override { return "End a queue's pause"; }

  std::string_view details() const override {
    return "Examples:\n"
           "  delayctl resume orders";
  }

  void Declare(Options* options) override { options->Positional("QUEUE", &queue_, "the queue"); }

  ExitCode Run(Context* context) override {
    const StatusOr<std::string> queue = QueueOf(queue_);
    if (!queue.ok()) {
      return context->Fail(queue.status());
    }
    StatusOr<std::unique_ptr<Api>> api = context->OpenApi();
    if (!api.ok()) {
      return context->Fail(api.status());
    }
    return Print((*api)->Resume(*queue), context);
  }

 private:
  std::optional<std::string> queue_;
};

}  // namespace

std::unique_ptr<Verb> MakePause() {
  return std::make_unique<PauseVerb>();
}

std::unique_ptr<Verb> MakeResume() {
  return std::make_unique<ResumeVerb>();
}

}  // namespace delayd::cli
