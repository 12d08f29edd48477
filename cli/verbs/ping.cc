#include <chrono>
#include <cstdio>

#include "cli/verbs/verbs.h"
#include "protocol/json_writer.h"

namespace delayd::cli {
namespace {

class PingVerb final : public Verb {
 public:
  std::string_view name() const override { return "ping"; }

  std::string_view summary() const override { return "Check that the daemon answers"; }

  std::string_view details() const override {
    return "Prints its version and how long the answer took. Exit code 5: nobody answered, or it\n"
           "is not well; 6: no answer within --timeout.\n"
           "\n"
           "Example:\n"
           "  delayctl ping --timeout 1s";
  }

  void Declare(Options* /*options*/) override {}

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    // Not our own clock: a round trip takes a fraction of its millisecond.
    const auto start = std::chrono::steady_clock::now();
    const StatusOr<protocol::Health> health = api->Health();
    const auto end = std::chrono::steady_clock::now();
    DELAYD_RETURN_IF_ERROR(health.status());
    if (!health->well()) {
      return Unavailable("delayd is " + health->status + ": " + health->Why());
    }
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(end - start).count();
    if (context->globals.output != OutputFormat::kTable) {
      protocol::JsonObjectWriter writer;
      writer.String("status", health->status);
      writer.String("version", health->version);
      writer.Number("round_trip_us", static_cast<uint64_t>(micros));
      context->console.out() << writer.Take() << '\n';
      return kExitOk;
    }
    char millis[32];
    std::snprintf(millis, sizeof millis, "%.2f ms", static_cast<double>(micros) / 1000.0);
    if (!context->globals.quiet) {
      context->console.Words("delayd " + health->version + ": " + millis);
    }
    return kExitOk;
  }
};

}  // namespace

std::unique_ptr<Verb> MakePing() {
  return std::make_unique<PingVerb>();
}

}  // namespace delayd::cli
