#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

class DrainVerb final : public Verb {
 public:
  std::string_view name() const override { return "drain"; }

  std::string_view summary() const override { return "Make the daemon refuse new jobs"; }

  std::string_view details() const override {
    return "For a move to another machine: new jobs are refused, over HTTP and from beanstalk\n"
           "clients alike, and what is there is worked off. It lasts until it is ended, or the\n"
           "daemon is restarted. SIGUSR1 does the same. Meanwhile enqueue ends with exit code 1,\n"
           "and import waits, up to its --retry-for.\n"
           "\n"
           "Examples:\n"
           "  delayctl drain\n"
           "  delayctl drain end       # take new jobs again";
  }

  void Declare(Options* options) override {
    options->Positional("[ACTION]", &action_, "end: take new jobs again", {"end"});
  }

  StatusOr<ExitCode> Run(Context* context) override {
    if (action_ && *action_ != "end") {
      return UsageError("'" + *action_ + "' is nothing to do here; say end or nothing");
    }
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::Stat> stats, api->Drain(!action_));
    std::ostream& out = context->console.out();
    if (context->globals.output != OutputFormat::kTable) {
      out << protocol::StatsToJson(stats) << '\n';
    } else if (!context->globals.quiet) {
      out << (action_ ? "new jobs are taken again\n" : "no new jobs are taken; the rest goes on\n");
    }
    return kExitOk;
  }

 private:
  std::optional<std::string> action_;
};

}  // namespace

std::unique_ptr<Verb> MakeDrain() {
  return std::make_unique<DrainVerb>();
}

}  // namespace delayd::cli
