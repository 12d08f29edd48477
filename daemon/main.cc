// delayd: the daemon. Opens the store, loads the engine, listens, and turns until told to stop.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/limits.h"
#include "daemon/access.h"
#include "daemon/beanstalk/session.h"
#include "daemon/command_line.h"
#include "daemon/engine/engine.h"
#include "daemon/exit_codes.h"
#include "daemon/http/http_session.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/monitor.h"
#include "daemon/offline.h"
#include "daemon/passed_sockets.h"
#include "daemon/server.h"
#include "daemon/service_notify.h"
#include "daemon/store_admin.h"
#include "daemon/trusted_clock.h"
#include "protocol/beanstalk/reply_writer.h"
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
          .lease_default = config.defaults.lease,
          .max_attempts_default = config.defaults.max_attempts,
          .key_retention = config.defaults.key_retention,
          .horizon = config.memory.horizon,
          .memory_jobs_max = config.memory.budget / limits::kMemoryBytesPerJob,
          .backoff_initial = config.defaults.backoff_initial,
          .backoff_factor = config.defaults.backoff_factor,
          .backoff_max = config.defaults.backoff_max,
          .clock_note_interval = std::chrono::seconds(10)};
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
  HttpApi(const Config& config,
          const Access& access,
          const http::ServiceReport* service,
          http::RequestCounts* counts)
      : router_({.payload_bytes_max = config.limits.payload,
                 .body_bytes_max = config.limits.request_body,
                 .version = std::string(Version()),
                 .service = service,
                 .counts = counts,
                 .access = &access}) {
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

// The beanstalk protocol on its sockets.
class BeanstalkApi {
 public:
  BeanstalkApi(const Config& config, BootTime started)
      : hub_({.job_bytes_max = config.limits.payload,
              .version = std::string(Version()),
              .started = started}) {}

  void ListenOn(Listener listener, Server* server) {
    server->Listen(
        std::move(listener),
        [this] { return std::make_unique<beanstalk::BeanstalkSession>(&hub_); },
        std::string(beanstalk::reply::kOutOfMemory));
  }

 private:
  beanstalk::Hub hub_;
};

// "http://127.0.0.1:80" or "unix:/path", and which protocol is spoken there when it is not HTTP.
std::string NameOf(const Listener& listener, std::string_view protocol) {
  constexpr std::string_view kHttp = "http://";
  std::string name = listener.name();
  if (!protocol.empty()) {
    name = std::string(protocol) + ":" + (listener.is_tcp() ? name.substr(kHttp.size()) : name);
  }
  return name;
}

// Takes what the service manager opened under `name`, opens what else the configuration names.
// `names` is for the log.
template <typename Api>
Status OpenListeners(std::string_view name,
                     const ListenSetting& socket,
                     const ListenSetting& listen,
                     PassedSockets* passed,
                     Api* api,
                     Server* server,
                     std::string* names) {
  const auto add = [&](StatusOr<std::optional<Listener>> listener) -> Status {
    DELAYD_RETURN_IF_ERROR(listener.status());
    if (listener->has_value()) {
      *names += (names->empty() ? "" : " ") + NameOf(**listener, name == "api" ? "" : name);
      api->ListenOn(std::move(**listener), server);
    }
    return OkStatus();
  };
  DELAYD_RETURN_IF_ERROR(add(passed->Unix(name, socket)));
  return add(passed->Tcp(name, listen));
}

Status OpenAllListeners(const Config& config,
                        HttpApi* api,
                        BeanstalkApi* beanstalk,
                        Server* server,
                        std::string* names) {
  StatusOr<PassedSockets> passed = PassedSockets::FromEnvironment();
  DELAYD_RETURN_IF_ERROR(passed.status());
  DELAYD_RETURN_IF_ERROR(OpenListeners("api",
                                       {"api.socket", config.api.socket},
                                       {"api.listen", config.api.listen},
                                       &*passed,
                                       api,
                                       server,
                                       names));
  DELAYD_RETURN_IF_ERROR(OpenListeners("beanstalk",
                                       {"beanstalk.socket", config.beanstalk.socket},
                                       {"beanstalk.listen", config.beanstalk.listen},
                                       &*passed,
                                       beanstalk,
                                       server,
                                       names));
  return passed->CheckAllTaken();
}

// SIGHUP. Says what it does, so that a reload is never taken for more than it is.
void Reload(const ServiceNotify& notify) {
  notify.Reloading();
  log::Warn(
      "reload: this version reads its configuration at the start only; restart it to apply "
      "changes, clients wait or try again meanwhile");
  notify.Reloaded("Serving; a changed configuration waits for a restart");
}

int Serve(const Config& config, storage::JobStore* store, const Clock& machine, BootTime started) {
  const ServiceNotify notify;
  notify.Loading(0);
  const StatusOr<Access> access = Access::Create(config.access);
  if (!access.ok()) {
    return Refuse("cannot tell who may do what", access.status(), kExitUsage);
  }
  const StatusOr<std::optional<engine::ClockSeen>> seen = ReadClockSeen(*store);
  if (!seen.ok()) {
    return Refuse("cannot read when the last run was", seen.status(), kExitFailed);
  }
  TrustedClock clock(&machine, config.clock, *seen, CurrentBootId());
  StatusOr<std::unique_ptr<engine::Engine>> engine =
      engine::Engine::Load(EngineOptionsOf(config), *store, clock.Sample(), [&](uint64_t timers) {
        notify.Loading(timers);
        log::Debug("loading", {{"timers", timers}});
      });
  if (!engine.ok()) {
    return Refuse("cannot load the jobs", engine.status(), kExitFailed);
  }
  DELAYD_CRASH_POINT("main/loaded");
  // Without jobs there is nothing that a wrong clock could fire, and long idleness looks like a
  // jump.
  if (clock.state() == engine::ClockState::kHeld && (*engine)->stats().scheduled == 0) {
    clock.Accept();
  }
  if (const Status status = CommitGathered(engine->get(), store, clock); !status.ok()) {
    return Refuse("cannot write to the store", status, kExitCommitFailed);
  }
  DELAYD_CRASH_POINT("main/epoch_durable");
  http::RequestCounts counts(http::Router::RouteNames().size());
  Monitor monitor(
      {.version = std::string(Version()),
       .queues_by_name = config.metrics.queues,
       .connections_max = config.limits.connections,
       .commit_stuck = config.health.commit_stuck},
      engine->get(),
      [store] { return storage::ReadRocksFigures(*store); },
      &counts);
  monitor.Watch(&clock);
  HttpApi api(config, *access, &monitor, &counts);
  BeanstalkApi beanstalk(config, started);
  Server server({.connections_max = config.limits.connections,
                 .idle_timeout = config.limits.idle,
                 .heartbeat_interval = notify.HeartbeatInterval(),
                 .heartbeat = [&notify] { notify.Heartbeat(); },
                 .reload = [&notify] { Reload(notify); },
                 .slow_turn = config.slow.turn,
                 .slow_commit = config.slow.commit,
                 .trusted_clock = &clock,
                 .stopping = [&notify] { notify.Stopping(); },
                 .disk = {.directory = config.data_dir,
                          .reserve = config.storage.reserve,
                          .free_bytes = FreeBytes},
                 .admin = MakeStoreAdmin(store, &machine)},
                engine->get(),
                store,
                &clock);
  monitor.Watch(&server);
  std::string names;
  const Status listening = OpenAllListeners(config, &api, &beanstalk, &server, &names);
  if (!listening.ok()) {
    return Refuse("cannot listen", listening, kExitFailed);
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
  DELAYD_CRASH_POINT("main/before_ready");
  notify.Ready(timers);
  const Status status = server.Run();
  return status.ok() ? kExitOk : kExitCommitFailed;  // Run has logged why
}

storage::RocksJobStoreOptions StoreOptionsOf(const Config& config) {
  storage::RocksJobStoreOptions options{.path = config.data_dir};
#ifdef DELAYD_CRASH_POINTS
  options.wal_bytes_max = kCrashTestWalBytes;
#endif
  return options;
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

int RunDaemon(const Config& config) {
  log::Start(config.log);
  // A reader of the log that goes away must not take the daemon along.
  std::signal(SIGPIPE, SIG_IGN);
  // A reload that comes before there is anything to reload must not end the start.
  std::signal(SIGHUP, SIG_IGN);
  RaiseFileLimit(config);
  const SystemClock clock;
  const BootTime started = clock.Sample().boot;
  storage::RecoveryReport recovery;
  StatusOr<std::unique_ptr<storage::JobStore>> store =
      storage::OpenRocksJobStore(StoreOptionsOf(config), &recovery);
  for (const std::string& line : recovery.Lines()) {
    log::Warn("recovery", {{"detail", line}});
  }
  if (!store.ok()) {
    return Refuse("cannot open the data directory", store.status(), kExitDataDir);
  }
  const int code = Serve(config, store->get(), clock, started);
  DELAYD_CRASH_POINT("main/served");
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
  const CommandLine line = ReadCommandLine(argc, argv, [](const std::string& name) {
    return static_cast<const char*>(std::getenv(name.c_str()));  // NOLINT(concurrency-mt-unsafe)
  });
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
    case CommandLine::Action::kVerify:
      return VerifyOffline(line.config.data_dir, line.repair);
    case CommandLine::Action::kRecover:
      return RecoverOffline(line.config.data_dir, line.accept_loss);
    case CommandLine::Action::kRun:
      break;
  }
  return RunDaemon(line.config);
}

}  // namespace
}  // namespace delayd

int main(int argc, char** argv) {
  return delayd::Main(argc, argv);
}
