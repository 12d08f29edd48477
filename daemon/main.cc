// delayd: the daemon. Opens the store, loads the engine, listens, and turns until told to stop.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "daemon/beanstalk/session.h"
#include "daemon/command_line.h"
#include "daemon/engine/engine.h"
#include "daemon/exit_codes.h"
#include "daemon/http/http_session.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/offline.h"
#include "daemon/server.h"
#include "daemon/service_notify.h"
#include "protocol/beanstalk/reply_writer.h"
#include "daemon/store_admin.h"
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
          .backoff_max = config.defaults.backoff_max};
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
  HttpApi(const Config& config, const engine::Engine* engine)
      : router_({.payload_bytes_max = config.limits.payload,
                 .body_bytes_max = config.limits.request_body,
                 .version = std::string(Version()),
                 .readiness = [engine] { return engine->enqueue_refusal(); }}) {
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

// Opens what the configuration names; `names` is for the log.
template <typename Api>
Status OpenListeners(const std::string& socket,
                     const std::string& listen,
                     std::string_view protocol,
                     Api* api,
                     Server* server,
                     std::string* names) {
  const auto add = [&](StatusOr<Listener> listener) -> Status {
    DELAYD_RETURN_IF_ERROR(listener.status());
    *names += (names->empty() ? "" : " ") + NameOf(*listener, protocol);
    api->ListenOn(std::move(listener).value(), server);
    return OkStatus();
  };
  if (!socket.empty()) {
    DELAYD_RETURN_IF_ERROR(add(Listener::OpenUnix(socket)));
  }
  if (!listen.empty()) {
    DELAYD_RETURN_IF_ERROR(add(Listener::OpenTcp(listen)));
  }
  return OkStatus();
}

int Serve(const Config& config, storage::JobStore* store, const Clock& clock, BootTime started) {
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
  HttpApi api(config, engine->get());
  BeanstalkApi beanstalk(config, started);
  Server server({.connections_max = config.limits.connections,
                 .idle_timeout = config.limits.idle,
                 .heartbeat_interval = notify.HeartbeatInterval(),
                 .heartbeat = [&notify] { notify.Heartbeat(); },
                 .stopping = [&notify] { notify.Stopping(); },
                 .disk = {.directory = config.data_dir,
                          .reserve = config.storage.reserve,
                          .free_bytes = FreeBytes},
                 .admin = MakeStoreAdmin(store, &clock)},
                engine->get(),
                store,
                &clock);
  std::string names;
  Status listening = OpenListeners(config.api.socket, config.api.listen, "", &api, &server, &names);
  if (listening.ok()) {
    listening = OpenListeners(
        config.beanstalk.socket, config.beanstalk.listen, "beanstalk", &beanstalk, &server, &names);
  }
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

int RunDaemon(const Config& config) {
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
  const int code = Serve(config, store->get(), clock, started);
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
