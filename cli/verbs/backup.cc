#include <cstdio>

#include "base/utf8.h"
#include "cli/human_time.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

// Long, because across file systems every byte is copied.
constexpr Millis kBackupTimeout{std::chrono::hours(1)};

class BackupVerb final : public Verb {
 public:
  std::string_view name() const override { return "backup"; }

  std::string_view summary() const override { return "Copy the store of the running daemon"; }

  std::string_view details() const override {
    return "The daemon writes the copy under its own user, and goes on serving. DIR is an\n"
           "absolute path on the daemon's machine that does not exist yet. Everything\n"
           "acknowledged before is in the copy.\n"
           "\n"
           "The service may not write to /tmp, /var/tmp, /dev/shm and /run/delayd: what is there\n"
           "would be removed with it.\n"
           "\n"
           "Nothing is shown until it has ended: at once where the daemon can make hard links,\n"
           "otherwise as long as the disk takes to copy what is stored, some seconds a GB.\n"
           "\n"
           "To restore: stop the daemon, put a copy of DIR in the place of its data directory,\n"
           "start it.\n"
           "\n"
           "Example:\n"
           "  delayctl backup /var/backups/delayd-1";
  }

  void Declare(Options* options) override {
    options->Positional("DIR", &dir_, "absolute path that does not exist yet");
  }

  StatusOr<ExitCode> Run(Context* context) override {
    if (!dir_.has_value() || !dir_->starts_with('/')) {
      return UsageError(
          "backup needs an absolute path that does not exist yet, such as /var/backups/delayd-1");
    }
    // JSON cannot carry other bytes: the daemon would be told another path.
    if (!IsShortUtf8(*dir_)) {
      return UsageError("the path '" + EscapeControls(*dir_) +
                        "' is not UTF-8; name a directory whose path is");
    }
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi(kBackupTimeout));
    DELAYD_ASSIGN_OR_RETURN(const protocol::BackupResult result, api->BackUp({.dir = *dir_}));
    if (context->globals.output != OutputFormat::kTable) {
      context->console.out() << protocol::BackupResultToJson(result) << '\n';
    } else if (!context->globals.quiet) {
      char size[32];
      std::snprintf(size, sizeof size, "%.1f MiB", static_cast<double>(result.bytes) / (1 << 20));
      context->console.Words("backed up to " + result.dir + ": " + size + " in " +
                             RoughDuration(Millis(static_cast<int64_t>(result.elapsed_ms))));
    }
    return kExitOk;
  }

 private:
  std::optional<std::string> dir_;
};

}  // namespace

std::unique_ptr<Verb> MakeBackup() {
  return std::make_unique<BackupVerb>();
}

}  // namespace delayd::cli
