// delayd: the daemon's entry point; runs what the command line asks for.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/standard_fds.h"
#include "daemon/access.h"
#include "daemon/awake_processors.h"
#include "daemon/command_line.h"
#include "daemon/exit_codes.h"
#include "daemon/last_words.h"
#include "daemon/log.h"
#include "daemon/offline.h"
#include "daemon/service.h"
#include "daemon/tls_session.h"

#include <sys/stat.h>

namespace delayd {
namespace {

// The contents of the files that the configuration names are checked too, and so is the device that
// it needs.
Status CheckNamedFiles(const Config& config) {
  const PlaceOf place_of = [&config](std::string_view key) { return config.PlaceOf(key); };
  DELAYD_RETURN_IF_ERROR(Access::Create(config.access, place_of).status());
  DELAYD_RETURN_IF_ERROR(AwakeProcessors::Open(config.processors.awake)
                             .status()
                             .WithContext(place_of("processors.awake")));
  if (!config.tls.on()) {
    return OkStatus();
  }
  TlsDoor tls(config.tls.certificate, config.tls.key);
  DELAYD_RETURN_IF_ERROR(tls.Load(place_of));
  if (const Status status = tls.CheckEnd(SystemClock().Sample().wall); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());  // does not prevent a start
  }
  return OkStatus();
}

// Fails if stdout could not be written: a list of damage that got lost must not look like an empty
// one.
int Written(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return code;
  }
  std::fprintf(stderr, "delayd: cannot write to stdout; is the disk full, or its reader gone?\n");
  return code == kExitOk ? kExitFailed : code;
}

int CheckConfig(const CommandLine& line) {
  const std::string source = line.config_file.empty() ? "no file, all defaults" : line.config_file;
  if (const Status status = CheckNamedFiles(line.config); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return ExitCodeOfNamed(status);
  }
  std::printf("%s: the configuration is valid\n", source.c_str());
  // As root this check misses files that the daemon may not read, and files that its group may.
  if (::geteuid() == 0 && (!line.config.access.token_file.empty() || line.config.tls.on() ||
                           line.config.processors.awake > Millis(0))) {
    const std::string file = line.config_file.empty() ? "" : " --config " + line.config_file;
    std::fprintf(stderr,
                 "%s: root may open every file; check those that it names as the daemon's user: "
                 "runuser -u delayd -- delayd --check-config%s\n",
                 source.c_str(),
                 file.c_str());
  }
  return kExitOk;
}

int Main(int argc, const char* const* argv) {
  // The jobs are private: files 0600, directories 0700; sockets are opened up by chmod.
  ::umask(0077);
  const ReadConfig read_config = [argc, argv] {
    return ReadCommandLine(argc, argv, [](const std::string& name) {
      return static_cast<const char*>(std::getenv(name.c_str()));  // NOLINT(concurrency-mt-unsafe)
    });
  };
  const CommandLine line = read_config();
  // Not with --verify and --recover: delayctl runs them, and with -o json or -q its stderr has no
  // words.
  if (line.action == CommandLine::Action::kCheckConfig ||
      line.action == CommandLine::Action::kRefuse) {
    for (const std::string& warning : MisspeltVariables(::environ)) {
      std::fprintf(stderr, "delayd: %s\n", warning.c_str());
    }
  }
  switch (line.action) {
    case CommandLine::Action::kPrint:
      std::fputs(line.text.c_str(), stdout);
      return Written(kExitOk);
    case CommandLine::Action::kRefuse:
      for (const std::string& error : line.errors) {
        const std::string prefix(log::ErrorPrefix());
        std::fprintf(stderr, "%s%s\n", prefix.c_str(), error.c_str());
      }
      return kExitUsage;
    case CommandLine::Action::kCheckConfig:
      return Written(CheckConfig(line));
    case CommandLine::Action::kVerify:
      return Written(VerifyOffline(line.config, line.repair));
    case CommandLine::Action::kRecover:
      return Written(RecoverOffline(line.config, line.accept_loss));
    case CommandLine::Action::kRun:
      break;
  }
  return RunService(line.config, [&] { return ReadAgain(line, read_config); });
}

}  // namespace
}  // namespace delayd

int main(int argc, char** argv) {
  delayd::ReserveStandardFds();
  delayd::InstallLastWords();
  return delayd::Main(argc, argv);
}
