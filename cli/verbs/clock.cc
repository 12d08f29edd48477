#include "cli/stat.h"
#include "cli/table.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class ClockVerb final : public Verb {
 public:
  std::string_view name() const override { return "clock"; }

  std::string_view summary() const override {
    return "Show whether the daemon believes the wall clock, or tell it to";
  }

  std::string_view details() const override {
    return "trusted: all is well. behind: the clock is behind what it was before; jobs with a\n"
           "wall-clock time are late. held: it is too far ahead to be believed; jobs with a\n"
           "wall-clock time wait until it is put right, synchronised, or accepted. Relative jobs\n"
           "(--in) are exact in all three.\n"
           "\n"
           "Examples:\n"
           "  delayctl clock\n"
           "  delayctl clock accept     # the clock is right as it is now";
  }

  void Declare(Options* options) override {
    options->Positional("[ACTION]", &action_, "accept: believe the clock as it is now", {"accept"});
  }

  bool only_reads() const override { return !action_.has_value(); }

  StatusOr<ExitCode> Run(Context* context) override {
    if (action_ && *action_ != "accept") {
      return UsageError("'" + *action_ +
                        "' is nothing to do with a clock; the only "
                        "action is accept");
    }
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::Stat> stats,
                            action_ ? api->AcceptClock() : api->Stats());
    const std::string state = StatText(stats, "clock").value_or("");
    if (context->globals.output != OutputFormat::kTable) {
      context->console.out() << protocol::StatsToJson({{"clock", state}}) << '\n';
    } else {
      context->console.Words(state);
    }
    return kExitOk;
  }

 private:
  std::optional<std::string> action_;
};

}  // namespace

std::unique_ptr<Verb> MakeClock() {
  return std::make_unique<ClockVerb>();
}

}  // namespace delayd::cli
