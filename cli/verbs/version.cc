#include "cli/help.h"
#include "cli/verbs/verbs.h"
#include "protocol/json_writer.h"

namespace delayd::cli {
namespace {

class VersionVerb final : public Verb {
 public:
  std::string_view name() const override { return "version"; }

  std::string_view summary() const override { return "Print the version of delayctl"; }

  std::string_view details() const override {
    return "The daemon's own version: delayctl ping.\n"
           "\n"
           "Example:\n"
           "  delayctl version";
  }

  void Declare(Options* /*options*/) override {}

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    if (context->globals.output == OutputFormat::kTable) {
      context->console.out() << VersionLine();
      return kExitOk;
    }
    protocol::JsonObjectWriter writer;
    writer.String("version", BuildVersion());
    context->console.out() << writer.Take() << '\n';
    return kExitOk;
  }
};

}  // namespace

std::string_view BuildVersion() {
  return DELAYD_VERSION;
}

std::unique_ptr<Verb> MakeVersion() {
  return std::make_unique<VersionVerb>();
}

}  // namespace delayd::cli
