#include <signal.h>

#include <sstream>
#include <utility>

#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/shell_word.h"
#include "cli/store_tool.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

constexpr size_t kIdsShownMax = 20;

class RecoverVerb final : public Verb {
 public:
  std::string_view name() const override { return "recover"; }

  std::string_view summary() const override {
    return "Show what a damaged store has lost, and open it without";
  }

  std::string_view details() const override {
    return "A daemon that finds acknowledged changes damaged refuses to start. This shows what\n"
           "would be lost, and changes nothing. A backup is better, if there is one.\n"
           "\n"
           "--accept-loss copies the damaged logs to damaged/ in the data directory and cuts\n"
           "them, so that the store opens again without what was damaged.\n"
           "\n"
           "Exit code 1: there is damage, and nothing was changed; or a table file is damaged,\n"
           "which no recovery mends.\n"
           "\n"
           "Example:\n"
           "  delayctl recover --data-dir /var/lib/delayd";
  }

  void Declare(Options* options) override {
    options->Text("--data-dir", "DIR", &data_dir_, "data directory of a stopped daemon");
    options->Flag("--accept-loss", &accept_loss_, "give up what is lost");
    options->Needs("--data-dir DIR");
  }

  bool only_reads() const override { return !accept_loss_; }

  StatusOr<ExitCode> Run(Context* context) override {
    if (!data_dir_.has_value()) {
      return UsageError("recover needs --data-dir, and a stopped daemon");
    }
    std::vector<std::string> flags = {"--recover", "--data-dir", *data_dir_};
    if (accept_loss_) {
      flags.emplace_back("--accept-loss");
    }
    // At a terminal the signal reaches delayd too, which may end between two of its changes.
    std::optional<InterruptGuard> guard;
    if (accept_loss_) {
      guard.emplace();
    }
    const StatusOr<protocol::StoreLine> line =
        RunStoreTool(flags, [](const protocol::StoreProgress&) {});
    if (!line.ok() && accept_loss_ && InterruptGuard::interrupted()) {
      return Unavailable(
          "interrupted: the recovery may be half done, and until it is ended no daemon starts "
          "on it; the same command ends it",
          "interrupted");
    }
    DELAYD_RETURN_IF_ERROR(line.status());
    const auto* result = std::get_if<protocol::RecoverResult>(&*line);
    if (result == nullptr) {
      return Internal("delayd gave another result than was asked for", "invalid_response");
    }
    const std::string report = Report(*result, *context);
    if (accept_loss_) {
      signal(SIGPIPE, SIG_IGN);  // else a reader that went away would end us before the report
    }
    context->console.out() << report;
    // A look can be repeated, but the loss is reported only once.
    const Status told = accept_loss_ ? context->console.CheckOut(true) : OkStatus();
    if (!told.ok()) {
      context->console.Draw(report);
      return told;
    }
    return result->whole() ? kExitOk : kExitFailed;
  }

 private:
  std::string Report(const protocol::RecoverResult& result, const Context& context) const {
    if (context.globals.output != OutputFormat::kTable) {
      return protocol::RecoverResultToJson(result) + '\n';
    }
    std::ostringstream out;
    if (context.globals.quiet) {
      for (const JobId id : result.gone) {
        out << ToInt(id) << '\n';
      }
    } else {
      Explain(result, out);
    }
    return std::move(out).str();
  }

  void Explain(const protocol::RecoverResult& result, std::ostream& out) const {
    for (const std::string& note : result.notes) {
      out << EscapeControls(note) << '\n';
    }
    if (!result.damaged) {
      out << "nothing acknowledged is lost in the logs" << AfterNoLoss(result) << '\n';
      return;
    }
    const bool capped = result.lists_capped;
    PrintIds(result.changed ? "jobs gone" : "jobs that would be gone", result.gone, capped, out);
    PrintIds("jobs as they were before a change", result.older, capped, out);
    PrintIds("jobs there again though acked or cancelled", result.revived, capped, out);
    if (!result.lists_complete) {
      out << "there may be more: at least one batch that is lost cannot be read\n";
    }
    out << (result.changed ? AfterLoss(result) : BeforeLoss(result)) << '\n';
  }

  static std::string AfterNoLoss(const protocol::RecoverResult& result) {
    if (result.unread) {
      return ", but a table file is damaged, which no recovery mends: restore a backup";
    }
    if (result.changed) {
      return StillWrong(result);
    }
    return std::string("; delayctl verify tells whether the tables agree") +
           (result.notes.empty() ? "" : "; the next start cuts what was torn by itself");
  }

  static std::string AfterLoss(const protocol::RecoverResult& result) {
    if (result.unread) {
      return "the loss is accepted, but a table file is damaged, which no recovery mends: the "
             "daemon may refuse to start, or fail later; restore a backup";
    }
    return "the store opens again" + StillWrong(result);
  }

  static std::string StillWrong(const protocol::RecoverResult& result) {
    return result.still_wrong == 0 ? ""
                                   : "; " + std::to_string(result.still_wrong) +
                                         " places, named above, could not be mended: for these "
                                         "restore a backup";
  }

  std::string BeforeLoss(const protocol::RecoverResult& result) const {
    if (!result.opens) {
      return "nothing was changed: the store would not open after the loss either; what to do "
             "stands above";
    }
    return std::string("nothing was changed; restore a backup") +
           (result.unread ? ", since no recovery mends table files" : "") +
           ", or give this up: delayctl recover --data-dir " + ShellWord(*data_dir_) +
           " --accept-loss";
  }

  static void PrintIds(std::string_view what,
                       const std::vector<JobId>& ids,
                       bool capped,
                       std::ostream& out) {
    if (ids.empty()) {
      return;
    }
    out << what << " (" << ids.size() << (capped ? " or more" : "") << "):";
    for (size_t i = 0; i < std::min(ids.size(), kIdsShownMax); ++i) {
      out << ' ' << ToInt(ids[i]);
    }
    if (ids.size() > kIdsShownMax) {
      out << (capped ? " ... (-o json names so many)" : " ... (-o json names all)");
    }
    out << '\n';
  }

  std::optional<std::string> data_dir_;
  bool accept_loss_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeRecover() {
  return std::make_unique<RecoverVerb>();
}

}  // namespace delayd::cli
