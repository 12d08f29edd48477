#include "daemon/reload.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/log.h"

namespace delayd {
namespace {

engine::Configure ApplySettings(CommandLine line, const std::string& waiting) {
  log::SetLevel(line.config.log.level);
  log::Info(
      "the configuration was reloaded: log level and queue settings; certificate and tokens are "
      "read again, all else needs a restart",
      {{"config", line.config_file}, {"queues", line.config.queues.size()}});
  if (!waiting.empty()) {
    log::Warn("what has changed waits for a restart", {{"keys", waiting}});
  }
  return {.defaults = line.config.defaults, .queues = std::move(line.config.queues)};
}

// Uses the certificate that the files hold now, which may have been renewed.
void ApplyCertificate(StatusOr<protocol::TlsContext::Ptr> certificate,
                      const Config& config,
                      TlsDoor* tls) {
  if (!config.tls.on()) {
    return;
  }
  if (!certificate.ok()) {
    log::Error(
        "the certificate was not reloaded; the old one is shown on",
        {{"code", certificate.status().reason()}, {"detail", certificate.status().message()}});
    return;
  }
  tls->Show(std::move(*certificate));
  log::Info("the certificate was reloaded", {{"certificate", config.tls.certificate}});
  WarnOfEnd(SystemClock().Sample().wall, tls);
}

// Uses the tokens that the file holds now, which may have changed.
void ApplyTokens(StatusOr<Access::Tokens> tokens, const Config& config, Access* access) {
  if (config.access.token_file.empty()) {
    return;
  }
  if (!tokens.ok()) {
    log::Error("the tokens were not reloaded; the old ones are valid on",
               {{"code", tokens.status().reason()}, {"detail", tokens.status().message()}});
    return;
  }
  access->SetTokens(std::move(*tokens));
  log::Info("the tokens were reloaded", {{"token_file", config.access.token_file}});
}

}  // namespace

FilesRead ReadFiles(const ReadConfig& read_config,
                    const Config& running,
                    const TlsDoor& tls,
                    const Access& access) {
  FilesRead files{.line = read_config()};
  if (files.line.action != CommandLine::Action::kRun) {
    return files;
  }
  const std::vector<std::string_view> waiting = KeysForRestart(running, files.line.config);
  for (const std::string_view key : waiting) {
    files.waiting += (files.waiting.empty() ? "" : " ") + std::string(key);
  }
  // Where a key has changed, what it named at the start is read, and that stands nowhere any more.
  const auto place_of = [&](std::string_view key) {
    return std::ranges::find(waiting, key) == waiting.end() ? files.line.config.PlaceOf(key)
                                                            : KeyAlone(key);
  };
  if (running.tls.on()) {
    files.certificate = tls.Read(place_of);
  }
  files.tokens = access.ReadTokens(place_of);
  return files;
}

std::optional<engine::Configure> Apply(FilesRead files,
                                       const Config& running,
                                       TlsDoor* tls,
                                       Access* access) {
  if (files.line.action != CommandLine::Action::kRun) {
    for (const std::string& error : files.line.errors) {
      log::Error("the configuration was not reloaded; all goes on as before", {{"detail", error}});
    }
    return std::nullopt;
  }
  engine::Configure settings = ApplySettings(std::move(files.line), files.waiting);
  ApplyCertificate(std::move(files.certificate), running, tls);
  ApplyTokens(std::move(files.tokens), running, access);
  return settings;
}

void WarnOfEnd(WallTime now, TlsDoor* tls) {
  if (const Status status = tls->NoteEnd(now); !status.ok()) {
    if (status.reason() == "certificate_expired") {
      log::Error("the certificate has expired", {{"detail", status.message()}});
      return;
    }
    log::Warn(status.reason() == "certificate_not_yet_valid" ? "the certificate is not valid yet"
                                                             : "the certificate ends soon",
              {{"detail", status.message()}});
  }
}

}  // namespace delayd
