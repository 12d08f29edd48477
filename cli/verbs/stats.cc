#include "cli/table.h"
#include "cli/verbs/verbs.h"
#include "protocol/timestamp.h"

namespace delayd::cli {
namespace {

class StatsVerb final : public Verb {
 public:
  std::string_view name() const override { return "stats"; }

  std::string_view summary() const override { return "Show the daemon's counters"; }

  std::string_view details() const override {
    return "Counts of jobs are exact, with one exception: due jobs that wait on disk for room in\n"
           "memory (memory.budget) count as scheduled until there is some. Counters of events\n"
           "begin with the daemon's start.\n"
           "\n"
           "Example:\n"
           "  delayctl stats -o json";
  }

  void Declare(Options* /*options*/) override {}

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::Stat> stats, api->Stats());
    if (context->globals.output != OutputFormat::kTable) {
      context->console.out() << protocol::StatsToJson(stats) << '\n';
      return kExitOk;
    }
    Table table({"COUNTER", "VALUE"});
    for (const protocol::Stat& stat : stats) {
      const auto* number = std::get_if<uint64_t>(&stat.value);
      table.Add({stat.name,
                 number != nullptr ? std::to_string(*number)
                                   : Text(std::get<std::string>(stat.value), *context)});
    }
    table.Flush(&context->console);
    return kExitOk;
  }

 private:
  // Times are shown as in all tables.
  static std::string Text(const std::string& text, const Context& context) {
    const StatusOr<WallTime> time = protocol::ParseTimestamp(text);
    return time.ok() ? context.TimeText(*time) : text;
  }
};

}  // namespace

std::unique_ptr<Verb> MakeStats() {
  return std::make_unique<StatsVerb>();
}

}  // namespace delayd::cli
