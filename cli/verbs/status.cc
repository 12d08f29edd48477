#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "cli/human_time.h"
#include "cli/stat.h"
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
    return "Exit code 5: it cannot be reached, or is not ready; 6: no answer within --timeout.\n"
           "\n"
           "Example:\n"
           "  delayctl status -o json";
  }

  void Declare(Options* /*options*/) override {}

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(const protocol::Health health, api->Readiness());
    const StatusOr<std::vector<protocol::Stat>> stats = api->Stats();
    if (context->globals.output != OutputFormat::kTable) {
      PrintJson(health, stats, context);
    } else if (!context->globals.quiet) {
      PrintHealth(health, context);
      if (stats.ok()) {
        PrintStats(*stats, context);
      }
    }
    if (health.well()) {
      DELAYD_RETURN_IF_ERROR(stats.status());
      return kExitOk;
    }
    const Status unwell = Unavailable("delayd is " + health.status + ": " + health.Why());
    return stats.ok()
               ? unwell
               : unwell.Followed("; what it holds is not known: " + stats.status().message());
  }

 private:
  static void PrintJson(const protocol::Health& health,
                        const StatusOr<std::vector<protocol::Stat>>& stats,
                        Context* context) {
    protocol::JsonObjectWriter writer;
    writer.String("status", health.status);
    writer.String("version", health.version);
    if (!health.reasons.empty()) {
      writer.String("why", health.Why());
    }
    if (stats.ok()) {
      writer.Raw("stats", protocol::StatsToJson(*stats));
    }
    context->console.out() << writer.Take() << '\n';
  }

  static void PrintLine(std::string name, const std::string& value, Console* console) {
    name.resize(12, ' ');
    console->out() << console->Bold(name) << EscapeControls(value) << '\n';
  }

  static void PrintHealth(const protocol::Health& health, Context* context) {
    PrintLine("delayd", health.version + ", " + health.status, &context->console);
    for (const protocol::Health::Reason& reason : health.reasons) {
      PrintLine("", reason.code + ": " + reason.detail, &context->console);
    }
  }

  static void PrintStats(const std::vector<protocol::Stat>& stats, Context* context) {
    const auto text = [&stats](std::string_view name) -> std::string {
      const std::optional<uint64_t> number = StatNumber(stats, name);
      return number ? std::to_string(*number) : StatText(stats, name).value_or("?");
    };
    const auto line = [context](std::string name, const std::string& value) {
      PrintLine(std::move(name), value, &context->console);
    };
    line("jobs",
         text("scheduled") + " scheduled, " + text("ready") + " ready, " + text("leased") +
             " leased, " + text("dead") + " dead, in " + text("queues") +
             (text("queues") == "1" ? " queue" : " queues"));
    line("workers", text("waiting") + " waiting for a job");
    if (const StatusOr<WallTime> due = protocol::ParseTimestamp(text("next_due")); due.ok()) {
      line("next due", context->TimeText(*due) + " (" + FromNow(*due, context->DaemonNow()) + ")");
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
