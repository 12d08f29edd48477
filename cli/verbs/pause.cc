// pause and resume.
#include "cli/human_time.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

void Print(const protocol::QueueCounts& queue, Context* context) {
  if (context->globals.output != OutputFormat::kTable) {
    context->console.out() << protocol::QueueToJson(queue) << '\n';
    return;
  }
  if (context->globals.quiet) {
    return;
  }
  const std::string how = !queue.paused ? " hands out again"
                          : queue.pause_left.has_value()
                              ? " is paused for " + RoughDuration(*queue.pause_left)
                              : " is paused until it is resumed";
  context->console.Words("queue " + queue.name + how + ": " + std::to_string(queue.ready) +
                         " ready, " + std::to_string(queue.leased) + " leased, " +
                         std::to_string(queue.scheduled) + " scheduled");
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

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::string queue, QueueOf(queue_));
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    const protocol::PauseRequest request{.duration = duration_, .create = create_};
    DELAYD_ASSIGN_OR_RETURN(const protocol::QueueCounts counts, api->Pause(queue, request));
    Print(counts, context);
    return kExitOk;
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

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::string queue, QueueOf(queue_));
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(const protocol::QueueCounts counts, api->Resume(queue));
    Print(counts, context);
    return kExitOk;
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
