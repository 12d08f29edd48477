#include "daemon/reload.h"

#include <string>
#include <string_view>

#include "base/clock.h"
#include "daemon/log.h"

namespace delayd {
namespace {

std::optional<engine::Configure> ReloadSettings(const ReadConfig& read_config,
                                                const Config& running) {
  const CommandLine line = read_config();
  if (line.action != CommandLine::Action::kRun) {
    for (const std::string& error : line.errors) {
      log::Error("the configuration was not reloaded; all goes on as before", {{"detail", error}});
    }
    return std::nullopt;
  }
  log::SetLevel(line.config.log.level);
  log::Info(
      "the configuration was reloaded: log level and queue settings; certificate and tokens are "
      "read again, all else needs a restart",
      {{"config", line.config_file}, {"queues", line.config.queues.size()}});
  std::string waiting;
  for (const std::string_view key : KeysForRestart(running, line.config)) {
    waiting += (waiting.empty() ? "" : " ") + std::string(key);
  }
  if (!waiting.empty()) {
    log::Warn("what has changed waits for a restart", {{"keys", waiting}});
  }
  return engine::Configure{.defaults = line.config.defaults, .queues = line.config.queues};
}

// The same files may hold a renewed certificate.
void ReloadCertificate(const Config& config, TlsDoor* tls) {
  if (!config.tls.on()) {
    return;
  }
  if (const Status status = tls->Load(); !status.ok()) {
    log::Error("the certificate was not reloaded; the old one is shown on",
               {{"code", status.reason()}, {"detail", status.message()}});
    return;
  }
  log::Info("the certificate was reloaded", {{"certificate", config.tls.certificate}});
  WarnOfEnd(SystemClock().Sample().wall, tls);
}

// The same file may hold other tokens.
void ReloadTokens(const Config& config, Access* access) {
  if (config.access.token_file.empty()) {
    return;
  }
  if (const Status status = access->ReloadTokens(); !status.ok()) {
    log::Error("the tokens were not reloaded; the old ones are valid on",
               {{"code", status.reason()}, {"detail", status.message()}});
    return;
  }
  log::Info("the tokens were reloaded", {{"token_file", config.access.token_file}});
}

}  // namespace

std::optional<engine::Configure> Reload(const ReadConfig& read_config,
                                        const Config& running,
                                        TlsDoor* tls,
                                        Access* access) {
  std::optional<engine::Configure> settings = ReloadSettings(read_config, running);
  if (settings) {
    ReloadCertificate(running, tls);
    ReloadTokens(running, access);
  }
  return settings;
}

void WarnOfEnd(WallTime now, TlsDoor* tls) {
  if (const Status status = tls->NoteEnd(now); !status.ok()) {
    log::Warn("the certificate has expired", {{"detail", status.message()}});
  }
}

}  // namespace delayd
