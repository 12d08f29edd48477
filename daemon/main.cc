// delayd: the daemon. Opens the store, loads the engine, listens, and turns until told to stop.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "daemon/command_line.h"
#include "daemon/engine/engine.h"
#include "daemon/exit_codes.h"
#include "daemon/http/http_session.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/server.h"
#include "daemon/service_notify.h"
#include "storage/recovery.h"
#include "storage/rocks_job_store.h"

#include <sys/resource.h>
#include <sys/stat.h>

namespace delayd {
namespace {

ExitCode ExitCodeOf(const Status& status, ExitCode otherwise) {
  if (status.code() == StatusCode::kDataLoss) {
    return kExitDamaged;
  }
  return status.reason() == "newer_schema" ? kExitNewerSchema : otherwise;
}

// One line: which step, and the status, which says the cause and the cure.
int Refuse(std::string_view step, const Status& status, ExitCode otherwise) {
  log::Error(step, {{"code", status.reason()}, {"detail", status.message()}});
  return ExitCodeOf(status, otherwise);
}

engine::EngineOptions EngineOptionsOf(const Config& config) {
  return {.boot_id = CurrentBootId(),
          .payload_bytes_max = config.limits.payload,
          .defaults = config.defaults,
          .queues = config.queues,
          .horizon = config.memory.horizon,
          .memory_jobs_max = config.memory.budget / limits::kMemoryBytesPerJob};
}

// The new epoch and whatever loading put right must be durable before the first request.
Status CommitGathered(engine::Engine* engine, storage::JobStore* store, const Clock& clock) {
  while (const std::optional<engine::SealedBatch> batch = engine->Seal(clock.Sample())) {
    DELAYD_RETURN_IF_ERROR(store->Commit(*batch->batch));
    engine->Committed(batch->sequence);
  }
  return engine->fatal();
}

// The HTTP interface on its sockets: what every connection shares.
class HttpApi {
 public:
  explicit HttpApi(const Config& config)
      : router_({.payload_bytes_max = config.limits.payload,
                 .body_bytes_max = config.limits.request_body,
                 .version = std::string(Version())}) {
    unix_.line_bytes_max = config.limits.request_line;
    unix_.head_bytes_max = config.limits.request_header;
    unix_.body_bytes_max = [this](std::string_view target) { return router_.BodyBytesMax(target); };
    tcp_ = unix_;
    // A browser reaches a loopback port by any name that was pointed at it; no page may.
    tcp_.hosts = {"localhost", "127.0.0.1", "::1"};
    http::AppendResponse(
        http::ProblemResponse(
            503,
            Unavailable("the daemon has as many connections as limits.connections allows; close "
                        "some, or raise it",
                        "too_many_connections")),
        false,
        true,
        &no_room_);
  }

  void ListenOn(Listener listener, Server* server) const {
    const http::ReaderOptions& options = listener.is_tcp() ? tcp_ : unix_;
    server->Listen(
        std::move(listener),
        [this, &options] { return std::make_unique<http::HttpSession>(options, router_); },
        no_room_);
  }

 private:
  http::Router router_;
  http::ReaderOptions unix_;
  http::ReaderOptions tcp_;
  std::string no_room_;
};

// Opens what the configuration names; `names` is for the log.
Status OpenListeners(const Config& config, const HttpApi& api, Server* server, std::string* names) {
  const auto add = [&](StatusOr<Listener> listener) -> Status {
    DELAYD_RETURN_IF_ERROR(listener.status());
    *names += (names->empty() ? "" : " ") + listener->name();
    api.ListenOn(std::move(listener).value(), server);
    return OkStatus();
  };
  if (!config.api.socket.empty()) {
    DELAYD_RETURN_IF_ERROR(add(Listener::OpenUnix(config.api.socket)));
  }
  if (!config.api.listen.empty()) {
    DELAYD_RETURN_IF_ERROR(add(Listener::OpenTcp(config.api.listen)));
  }
  return OkStatus();
}

// Reads the configuration again, from the same sources.
using ReadConfig = std::function<CommandLine()>;

// What SIGHUP changes: the level of the log and the settings of queues. A file with a mistake
// changes nothing.
std::optional<engine::Configure> Reload(const ReadConfig& read_config, const Config& running) {
  const CommandLine line = read_config();
  if (line.action != CommandLine::Action::kRun) {
    for (const std::string& error : line.errors) {
      log::Error("the configuration was not reloaded; all goes on as before", {{"detail", error}});
    }
    return std::nullopt;
  }
  log::SetLevel(line.config.log.level);
  log::Info(
      "the configuration was reloaded: log level and queue settings; all else needs a restart",
      {{"config", line.config_file}, {"queues", line.config.queues.size()}});
  if (line.config.data_dir != running.data_dir || line.config.api.socket != running.api.socket ||
      line.config.api.listen != running.api.listen) {
    log::Warn("data_dir and api differ in the file; they change with a restart only");
  }
  return engine::Configure{.defaults = line.config.defaults, .queues = line.config.queues};
}

int Serve(const Config& config,
          const ReadConfig& read_config,
          storage::JobStore* store,
          const Clock& clock,
          BootTime started) {
  const ServiceNotify notify;
  notify.Loading(0);
  StatusOr<std::unique_ptr<engine::Engine>> engine =
      engine::Engine::Load(EngineOptionsOf(config), *store, clock.Sample(), [&](uint64_t timers) {
        notify.Loading(timers);
        log::Debug("loading", {{"timers", timers}});
      });
  if (!engine.ok()) {
    return Refuse("cannot load the jobs", engine.status(), kExitFailed);
  }
  if (const Status status = CommitGathered(engine->get(), store, clock); !status.ok()) {
    return Refuse("cannot write to the store", status, kExitCommitFailed);
  }
  const HttpApi api(config);
  Server server({.connections_max = config.limits.connections,
                 .idle_timeout = config.limits.idle,
                 .heartbeat_interval = notify.HeartbeatInterval(),
                 .heartbeat = [&notify] { notify.Heartbeat(); },
                 .stopping = [&notify] { notify.Stopping(); },
                 .reload = [&] { return Reload(read_config, config); }},
                engine->get(),
                store,
                &clock);
  std::string names;
  if (const Status status = OpenListeners(config, api, &server, &names); !status.ok()) {
    return Refuse("cannot listen", status, kExitFailed);
  }
  const engine::StatsView stats = (*engine)->stats();
  const uint64_t timers = stats.scheduled + stats.ready;
  log::Info("delayd is ready",
            {{"version", Version()},
             {"data_dir", config.data_dir},
             {"listen", names},
             {"timers", timers},
             {"dead", stats.dead},
             {"start_ms", (clock.Sample().boot - started).count()}});
  notify.Ready(timers);
  const Status status = server.Run();
  return status.ok() ? kExitOk : kExitCommitFailed;  // Run has logged why
}

// Connections and RocksDB's files share one limit, whose soft value is often 1024.
void RaiseFileLimit(const Config& config) {
  constexpr rlim_t kOtherFiles = 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return;
  }
  const rlim_t wanted = config.limits.connections + kOtherFiles;
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur < wanted) {
    log::Warn("the limit of open files is low; raise it or lower limits.connections",
              {{"limit", limit.rlim_cur}, {"wanted", wanted}});
  }
}

int RunDaemon(const Config& config, const ReadConfig& read_config) {
  log::Start(config.log);
  // A reader of the log that goes away must not take the daemon along.
  std::signal(SIGPIPE, SIG_IGN);
  RaiseFileLimit(config);
  const SystemClock clock;
  const BootTime started = clock.Sample().boot;
  storage::RecoveryReport recovery;
  StatusOr<std::unique_ptr<storage::JobStore>> store =
      storage::OpenRocksJobStore({.path = config.data_dir}, &recovery);
  for (const std::string& line : recovery.Lines()) {
    log::Warn("recovery", {{"detail", line}});
  }
  if (!store.ok()) {
    return Refuse("cannot open the data directory", store.status(), kExitDataDir);
  }
  const int code = Serve(config, read_config, store->get(), clock, started);
  if (const Status status = (*store)->Close(); !status.ok() && code == kExitOk) {
    return Refuse("cannot close the store", status, kExitFailed);
  }
  if (code == kExitOk) {
    log::Info("delayd has ended in order");
  }
  return code;
}

int Main(int argc, const char* const* argv) {
  // Jobs are nobody else's business: files 0600, directories 0700, sockets opened by chmod.
  ::umask(0077);
  const ReadConfig read_config = [argc, argv] {
    return ReadCommandLine(argc, argv, [](const std::string& name) {
      return static_cast<const char*>(std::getenv(name.c_str()));  // NOLINT(concurrency-mt-unsafe)
    });
  };
  const CommandLine line = read_config();
  switch (line.action) {
    case CommandLine::Action::kPrint:
      std::fputs(line.text.c_str(), stdout);
      return kExitOk;
    case CommandLine::Action::kRefuse:
      for (const std::string& error : line.errors) {
        std::fprintf(stderr, "%s\n", error.c_str());
      }
      return kExitUsage;
    case CommandLine::Action::kCheckConfig:
      std::printf("%s: the configuration is valid\n",
                  line.config_file.empty() ? "no file, all defaults" : line.config_file.c_str());
      return kExitOk;
    case CommandLine::Action::kRun:
      break;
  }
  return RunDaemon(line.config, read_config);
}

}  // namespace
}  // namespace delayd

int main(int argc, char** argv) {
  return delayd::Main(argc, argv);
}
