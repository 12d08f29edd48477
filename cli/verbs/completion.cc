#include "cli/completion.h"

#include "cli/verbs/verbs.h"
#include "protocol/nearest.h"

namespace delayd::cli {
namespace {

class CompletionVerb final : public Verb {
 public:
  std::string_view name() const override { return "completion"; }

  std::string_view summary() const override { return "Print the completion script of a shell"; }

  std::string_view details() const override {
    return "Completes verbs, options and their values, and asks the daemon for names of queues. "
           "The\n"
           "packages install the scripts where the shells look for them.\n"
           "\n"
           "Examples:\n"
           "  source <(delayctl completion bash)\n"
           "  delayctl completion zsh > ~/.zfunc/_delayctl\n"
           "  delayctl completion fish > ~/.config/fish/completions/delayctl.fish";
  }

  void Declare(Options* options) override {
    options->Positional("SHELL", &shell_, "bash, zsh or fish", {"bash", "zsh", "fish"});
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    if (!shell_.has_value()) {
      return UsageError("no shell is named; give bash, zsh or fish");
    }
    const std::optional<std::string_view> script = CompletionScript(*shell_);
    if (!script.has_value()) {
      return UsageError("there is no completion for " + protocol::Quoted(*shell_) +
                        "; use bash, zsh or fish");
    }
    context->console.out() << *script;
    return kExitOk;
  }

 private:
  std::optional<std::string> shell_;
};

}  // namespace

std::unique_ptr<Verb> MakeCompletion() {
  return std::make_unique<CompletionVerb>();
}

}  // namespace delayd::cli
