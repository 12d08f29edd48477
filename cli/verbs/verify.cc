#include "cli/human_time.h"
#include "cli/progress.h"
#include "cli/shell_word.h"
#include "cli/store_tool.h"
#include "cli/table.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

// Generous: a store of ten million jobs is read in about a minute.
constexpr Millis kVerifyTimeout{std::chrono::hours(1)};

class VerifyVerb final : public Verb {
 public:
  std::string_view name() const override { return "verify"; }

  std::string_view summary() const override { return "Check that the store is whole"; }

  std::string_view details() const override {
    return "Reads every row, checks its checksum and that the tables agree, and names what does\n"
           "not. Exit code 1: something disagrees.\n"
           "\n"
           "Without --data-dir the running daemon does it, on a snapshot, and goes on serving.\n"
           "Nothing is shown until it has ended: some seconds for a million jobs, a minute for\n"
           "ten million, longer from a slow disk.\n"
           "\n"
           "With --data-dir the daemon must be stopped. --repair then puts right what can be\n"
           "derived from other tables, and nothing else.\n"
           "\n"
           "Examples:\n"
           "  delayctl verify\n"
           "  delayctl verify --data-dir /var/lib/delayd --repair";
  }

  void Declare(Options* options) override {
    options->Text("--data-dir", "DIR", &data_dir_, "data directory of a stopped daemon");
    options->Flag("--repair", &repair_, "put right what can be derived");
  }

  bool only_reads() const override { return !repair_; }

  StatusOr<ExitCode> Run(Context* context) override {
    if (repair_ && !data_dir_.has_value()) {
      return UsageError("--repair works on a stopped daemon; give its --data-dir");
    }
    DELAYD_ASSIGN_OR_RETURN(const protocol::VerifyResult result,
                            data_dir_.has_value() ? Offline(context) : Online(context));
    Print(result, context);
    return result.whole() ? kExitOk : kExitFailed;
  }

 private:
  static StatusOr<protocol::VerifyResult> Online(Context* context) {
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi(kVerifyTimeout));
    return api->Verify();
  }

  StatusOr<protocol::VerifyResult> Offline(Context* context) {
    std::vector<std::string> flags = {"--verify", "--data-dir", *data_dir_};
    if (repair_) {
      flags.emplace_back("--repair");
    }
    std::optional<Progress> bar;
    DELAYD_ASSIGN_OR_RETURN(const protocol::StoreLine line,
                            RunStoreTool(flags, [&](const protocol::StoreProgress& step) {
                              if (!bar.has_value()) {
                                bar.emplace(
                                    &context->console, &context->clock, "rows", step.rows_total);
                              }
                              bar->Update(step.rows, step.rows);
                            }));
    if (const auto* result = std::get_if<protocol::VerifyResult>(&line)) {
      return *result;
    }
    return Internal("delayd gave another result than was asked for", "invalid_response");
  }

  void Print(const protocol::VerifyResult& result, Context* context) const {
    if (context->globals.output != OutputFormat::kTable) {
      context->console.out() << protocol::VerifyResultToJson(result) << '\n';
      return;
    }
    for (const std::string& note : result.notes) {
      context->console.Say(note);
    }
    if (!result.findings.empty()) {
      Table table({"TABLE", "REPAIRABLE", "DISAGREEMENT"});
      for (const protocol::StoreFinding& finding : result.findings) {
        table.Add({finding.table, finding.repairable ? "yes" : "no", finding.what});
      }
      table.Flush(&context->console);
    }
    if (!context->globals.quiet) {
      context->console.out() << Summary(result) << '\n';
    }
  }

  std::string Summary(const protocol::VerifyResult& result) const {
    const std::string read = std::to_string(result.rows) + " rows, " +
                             std::to_string(result.pending) + " pending and " +
                             std::to_string(result.dead) + " dead jobs, in " +
                             RoughDuration(Millis(static_cast<int64_t>(result.elapsed_ms)));
    if (result.disagreements == 0) {
      return "the store is whole: " + read;
    }
    std::string text = std::to_string(result.disagreements) + " disagreements";
    if (result.repaired > 0) {
      text += ", " + std::to_string(result.repaired) + " repaired";
    }
    text += ": " + read;
    if (result.whole()) {
      return text + "; the store is whole now";
    }
    const std::string directory = ShellWord(data_dir_.value_or("DIR"));
    const std::string otherwise =
        "restore a backup, or, without one: delayctl recover --data-dir " + directory +
        " --accept-loss, which names lost queues anew and corrects marks";
    if (repair_) {
      return text + "; what is left cannot be derived: " + otherwise;
    }
    return text + "; what is repairable: delayctl verify --data-dir " + directory +
           " --repair, with the daemon stopped; for the rest " + otherwise;
  }

  std::optional<std::string> data_dir_;
  bool repair_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeVerify() {
  return std::make_unique<VerifyVerb>();
}

}  // namespace delayd::cli
