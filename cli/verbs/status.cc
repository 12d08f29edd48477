#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "cli/human_time.h"
#include "cli/verbs/verbs.h"
#include "protocol/json_writer.h"
#include "protocol/timestamp.h"

namespace delayd::cli {
namespace {

class StatusVerb final : public Verb {
 public:
  std::string_view name() const override { return "status"; }

  std::string_view summary() const override {
    return "Show whether the daemon serves, and what it holds";
  }

  std::string_view details() const override {
    return "Exit code 5: it does not answer, or is not ready.\n"
           "\n"
           "Example:\n"
           "  delayctl status -o json";
  }

  void Declare(Options* /*options*/) override {}

  bool only_reads() const override { return true; }

  ExitCode Run(Context* context) override {
    StatusOr<std::unique_ptr<Api>> api = context->OpenApi();
    if (!api.ok()) {
      return context->Fail(api.status());
    }
    const StatusOr<protocol::Health> health = (*api)->Readiness();
    if (!health.ok()) {
      return context->Fail(health.status());
    }
    const StatusOr<std::vector<protocol::Stat>> stats = (*api)->Stats();
    if (!stats.ok()) {
      return context->Fail(stats.status());
    }
    if (context->globals.output != OutputFormat::kTable) {
      protocol::JsonObjectWriter writer;
      writer.String("status", health->status);
      writer.String("version", health->version);
      if (!health->reasons.empty()) {
        writer.String("why", health->Why());
      }
      writer.Raw("stats", protocol::StatsToJson(*stats));
      context->console.out() << writer.Take() << '\n';
    } else if (!context->globals.quiet) {
      PrintCard(*health, *stats, context);
    }
    return health->well()
               ? kExitOk
               : context->Fail(Unavailable("delayd is " + health->status + ": " + health->Why()));
  }

 private:
  static void PrintCard(const protocol::Health& health,
                        const std::vector<protocol::Stat>& stats,
                        Context* context) {
    const auto text = [&stats](std::string_view name) -> std::string {
      const auto found = std::ranges::find(stats, name, &protocol::Stat::name);
      if (found == stats.end()) {
        return "?";
      }
      const auto* number = std::get_if<uint64_t>(&found->value);
      return number != nullptr ? std::to_string(*number) : std::get<std::string>(found->value);
    };
    Console& console = context->console;
    const auto line = [&console](std::string name, const std::string& value) {
      name.resize(12, ' ');
      console.out() << console.Bold(name) << EscapeControls(value) << '\n';
    };
    line("delayd", health.version + ", " + health.status);
    for (const protocol::Health::Reason& reason : health.reasons) {
      line("", reason.code + ": " + reason.detail);
    }
    line("jobs",
         text("scheduled") + " scheduled, " + text("ready") + " ready, " + text("leased") +
             " leased, " + text("dead") + " dead, in " + text("queues") +
             (text("queues") == "1" ? " queue" : " queues"));
    line("workers", text("waiting") + " waiting for a job");
    if (const StatusOr<WallTime> due = protocol::ParseTimestamp(text("next_due")); due.ok()) {
      line("next due",
           context->TimeText(*due) + " (" + FromNow(*due, context->clock.Sample().wall) + ")");
    }
    if (text("damaged") != "0") {
      line("damaged", text("damaged") + " records; the log names them");
    }
  }
};

}  // namespace

std::unique_ptr<Verb> MakeStatus() {
  return std::make_unique<StatusVerb>();
}

}  // namespace delayd::cli
