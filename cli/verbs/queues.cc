#include "cli/human_time.h"
#include "cli/table.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class QueuesVerb final : public Verb {
 public:
  std::string_view name() const override { return "queues"; }

  std::string_view summary() const override {
    return "List queues with their counts, pauses and caps";
  }

  std::string_view details() const override {
    return "On a terminal long names are cut to fit; -o wide shows them whole.\n"
           "\n"
           "Examples:\n"
           "  delayctl queues\n"
           "  delayctl queues orders -o json";
  }

  void Declare(Options* options) override {
    options->Positional("[QUEUE]", &queue_, "only this queue");
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(std::vector<protocol::QueueCounts> queues, Ask(*api));
    Print(queues, context);
    return kExitOk;
  }

 private:
  StatusOr<std::vector<protocol::QueueCounts>> Ask(Api& api) const {
    if (!queue_.has_value()) {
      return api.Queues();
    }
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(*queue_));
    DELAYD_ASSIGN_OR_RETURN(protocol::QueueCounts queue, api.Queue(*queue_));
    return std::vector<protocol::QueueCounts>{std::move(queue)};
  }

  static std::string PauseOf(const protocol::QueueCounts& queue) {
    if (queue.paused && queue.pause_left.has_value()) {
      return RoughDuration(*queue.pause_left);
    }
    return queue.paused ? "yes" : "no";
  }

  // "5 leased, 100/s, 20 at once, 1000 stored", or nothing.
  static std::string CapsOf(const protocol::QueueCounts& queue) {
    std::string caps;
    const auto add = [&caps](const std::string& cap) { caps += (caps.empty() ? "" : ", ") + cap; };
    if (queue.concurrency != 0) {
      add(std::to_string(queue.concurrency) + " leased");
    }
    if (!queue.rate.empty()) {
      add(queue.rate);
    }
    if (queue.burst > 1) {
      add(std::to_string(queue.burst) + " at once");
    }
    if (queue.max_jobs != 0) {
      add(std::to_string(queue.max_jobs) + " stored");
    }
    return caps;
  }

  void Print(const std::vector<protocol::QueueCounts>& queues, Context* context) const {
    std::ostream& out = context->console.out();
    if (!context->globals.quiet && context->globals.output == OutputFormat::kJson) {
      out << (queue_.has_value() ? protocol::QueueToJson(queues.front())
                                 : protocol::QueuesToJson(queues))
          << '\n';
      return;
    }
    Table table({"QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "PAUSED", "CAPS"});
    for (const protocol::QueueCounts& queue : queues) {
      if (context->globals.quiet) {
        context->console.Words(queue.name);
      } else if (context->globals.output == OutputFormat::kJsonl) {
        out << protocol::QueueToJson(queue) << '\n';
      } else {
        table.Add({queue.name,
                   std::to_string(queue.scheduled),
                   std::to_string(queue.ready),
                   std::to_string(queue.leased),
                   std::to_string(queue.dead),
                   PauseOf(queue),
                   CapsOf(queue)});
      }
    }
    if (!context->globals.quiet && context->globals.output == OutputFormat::kTable) {
      // Otherwise one queue with a long name would make each line take several rows of the screen.
      if (context->CutsNames()) {
        table.FitColumns({0}, context->console.traits().width);
      }
      table.Flush(&context->console);
    }
  }

  std::optional<std::string> queue_;
};

}  // namespace

std::unique_ptr<Verb> MakeQueues() {
  return std::make_unique<QueuesVerb>();
}

}  // namespace delayd::cli
