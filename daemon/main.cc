// delayd: the daemon. Opens the store, loads the engine, listens, and turns until told to stop.
#include <unistd.h>

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
#include "base/crash_point.h"
#include "base/limits.h"
#include "base/size_text.h"
#include "base/standard_fds.h"
#include "daemon/access.h"
#include "daemon/awake_processors.h"
#include "daemon/beanstalk/session.h"
#include "daemon/command_line.h"
#include "daemon/config_values.h"
#include "daemon/disk_reserve.h"
#include "daemon/engine/engine.h"
#include "daemon/exit_codes.h"
#include "daemon/http/http_session.h"
#include "daemon/last_words.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/monitor.h"
#include "daemon/offline.h"
#include "daemon/passed_sockets.h"
#include "daemon/server.h"
#include "daemon/service_notify.h"
#include "daemon/store_admin.h"
#include "daemon/tls_session.h"
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

// A clock that is off by 2 s is noticed.
constexpr Millis kClockNoteMin{1000};
// So many deleted rows cost a scan 13 us. A row in each batch of one job was a tenth of its commit.
constexpr size_t kJobsPerMark = 32;

engine::EngineOptions EngineOptionsOf(const Config& config) {
  return {.boot_id = CurrentBootId(),
          .payload_bytes_max = config.limits.payload,
          .defaults = config.defaults,
          .queues = config.queues,
          .horizon = config.memory.horizon,
          .memory_jobs_max = config.memory.budget / limits::kMemoryBytesPerJob,
          .clock_note_interval = std::chrono::seconds(10),
          .clock_note_min = kClockNoteMin,
          .jobs_per_mark = kJobsPerMark};
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
  // `tls` is null, or what TCP is spoken through.
  HttpApi(const Config& config,
          const Access& access,
          const http::ServiceReport* service,
          http::RequestCounts* counts,
          TlsDoor* tls)
      : router_({.payload_bytes_max = config.limits.payload,
                 .body_bytes_max = config.limits.request_body,
                 .version = std::string(Version()),
                 .service = service,
                 .counts = counts,
                 .user_jobs_max = config.limits.jobs_per_user,
                 .access = &access,
                 .date = &date_}),
        tls_(tls) {
    unix_.line_bytes_max = config.limits.request_line;
    unix_.head_bytes_max = config.limits.request_header;
    unix_.body_bytes_max = [this](std::string_view method, std::string_view target) {
      return router_.BodyBytesMax(method, target);
    };
    tcp_ = unix_;
    // A browser reaches a loopback port by any name that was pointed at it; no page may. With TLS
    // the certificate says under which names.
    if (tls == nullptr) {
      tcp_.hosts = {"localhost", "127.0.0.1", "::1"};
    }
    http::AppendResponse(
        http::ProblemResponse(
            503,
            Unavailable("the daemon has as many connections as limits.connections, or its limit of "
                        "open files, allows; close some, or raise it",
                        "too_many_connections")),
        {},
        false,
        "close",
        &no_room_);
  }

  std::string NameOf(const Listener& listener) const {
    return listener.is_tcp() && tls_ != nullptr ? "https://" + listener.address() : listener.name();
  }

  void ListenOn(Listener listener, Server* server) const {
    const http::ReaderOptions& options = listener.is_tcp() ? tcp_ : unix_;
    const bool with_tls = listener.is_tcp() && tls_ != nullptr;
    const auto make = [this, &options, with_tls]() -> std::unique_ptr<Session> {
      auto session = std::make_unique<http::HttpSession>(options, router_);
      return with_tls ? tls_->Wrap(std::move(session)) : std::move(session);
    };
    server->Listen(std::move(listener), make, with_tls ? std::string(TlsDoor::NoRoom()) : no_room_);
  }

  void SetTime(const Now& now) { date_.Set(now.wall); }

 private:
  http::HttpDate date_;
  http::Router router_;
  http::ReaderOptions unix_;
  http::ReaderOptions tcp_;
  std::string no_room_;
  TlsDoor* const tls_;
};

// The beanstalk protocol on its sockets.
class BeanstalkApi {
 public:
  BeanstalkApi(const Config& config, const Access& access, BootTime started)
      : hub_({.job_bytes_max = config.limits.payload,
              .version = std::string(Version()),
              .started = started,
              .user_jobs_max = config.limits.jobs_per_user,
              .access = &access}) {}

  static std::string NameOf(const Listener& listener) {
    return "beanstalk:" + (listener.is_tcp() ? listener.address() : listener.name());
  }

  void ListenOn(Listener listener, Server* server) {
    server->Listen(
        std::move(listener),
        [this] { return std::make_unique<beanstalk::BeanstalkSession>(&hub_); },
        std::string(beanstalk::reply::kOutOfMemory));
  }

 private:
  beanstalk::Hub hub_;
};

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
      (*listener)->set_label(api->NameOf(**listener));
      *names += (names->empty() ? "" : " ") + (*listener)->label();
      api->ListenOn(std::move(**listener), server);
    }
    return OkStatus();
  };
  DELAYD_RETURN_IF_ERROR(add(passed->Unix(name, socket)));
  return add(passed->Tcp(name, listen));
}

Reach ReachOf(const Config& config) {
  return config.tls.on() && !config.access.token_file.empty() ? Reach::kAnywhere : Reach::kLoopback;
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
                                       {"api.listen", config.api.listen, ReachOf(config)},
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

void WarnOfEnd(WallTime now, TlsDoor* tls) {
  if (const Status status = tls->NoteEnd(now); !status.ok()) {
    log::Warn("the certificate has expired", {{"detail", status.message()}});
  }
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

// Connections and RocksDB's files share one limit, whose soft value is often 1024.
constexpr rlim_t kOtherFiles = 1024;
// An empty store has some 30 open, and each flush adds up to one a table.
constexpr rlim_t kOtherFilesMin = 128;

void RaiseFileLimit(const Config& config) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return;
  }
  const rlim_t wanted = config.limits.connections + kOtherFiles;
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// With fewer the store, or what the server waits with, cannot even be opened.
constexpr rlim_t kFilesMin = 64;

Status CheckFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kFilesMin) {
    return OkStatus();
  }
  return ResourceExhausted("the limit of open files is " + std::to_string(limit.rlim_cur) +
                           ", and the daemon needs " + std::to_string(kFilesMin) +
                           " at least; raise it (ulimit -n, LimitNOFILE=)");
}

// Under a low limit connections leave RocksDB its part: a file that it has no descriptor for ends
// the daemon.
uint32_t ConnectionsThatFit(const Config& config) {
  rlimit limit{};
  const rlim_t wanted = config.limits.connections + kOtherFiles;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
    return config.limits.connections;
  }
  const rlim_t others = std::clamp(limit.rlim_cur / 2, kOtherFilesMin, kOtherFiles);
  const rlim_t room = std::max(limit.rlim_cur, others + 1) - others;
  const auto fit = static_cast<uint32_t>(std::min<rlim_t>(config.limits.connections, room));
  log::Warn("the limit of open files is low; raise it or lower limits.connections",
            {{"limit", limit.rlim_cur}, {"wanted", wanted}, {"connections_max", fit}});
  return fit;
}

bool HasPendingJobs(const engine::Engine& engine) {
  const engine::StatsView stats = engine.stats();
  return stats.scheduled + stats.ready > 0;
}

// Null: they sleep as they like.
StatusOr<std::unique_ptr<AwakeProcessors>> ProcessorsOf(const Config& config) {
  if (config.processors.awake == Millis(0)) {
    return std::unique_ptr<AwakeProcessors>();
  }
  return AwakeProcessors::Open(config.processors.awake);
}

int Serve(const Config& config,
          const ReadConfig& read_config,
          storage::JobStore* store,
          const Clock& machine,
          BootTime started) {
  const ServiceNotify notify;
  notify.Loading(0);
  StatusOr<Access> access = Access::Create(config.access);
  if (!access.ok()) {
    return Refuse("cannot tell who may do what", access.status(), kExitUsage);
  }
  TlsDoor tls(config.tls.certificate, config.tls.key);
  if (const Status status = config.tls.on() ? tls.Load() : OkStatus(); !status.ok()) {
    return Refuse("cannot use TLS", status, kExitUsage);
  }
  WarnOfEnd(machine.Sample().wall, &tls);
  const StatusOr<std::optional<engine::ClockSeen>> seen = ReadClockSeen(*store);
  if (!seen.ok()) {
    return Refuse("cannot read when the last run was", seen.status(), kExitFailed);
  }
  TrustedClock clock(&machine, config.clock, *seen, CurrentBootId());
  const StatusOr<std::unique_ptr<AwakeProcessors>> processors = ProcessorsOf(config);
  if (!processors.ok()) {
    return Refuse("cannot keep the processors awake", processors.status(), kExitUsage);
  }
  StatusOr<std::unique_ptr<engine::Engine>> engine =
      engine::Engine::Load(EngineOptionsOf(config), *store, clock.Sample(), [&](uint64_t timers) {
        notify.Loading(timers);
        log::Debug("loading", {{"timers", timers}});
      });
  if (!engine.ok()) {
    return Refuse("cannot load the jobs", engine.status(), kExitFailed);
  }
  DELAYD_CRASH_POINT("main/loaded");
  // Without jobs there is nothing that a wrong clock could fire or let expire, and long idleness
  // looks like a jump.
  if (clock.state() == engine::ClockState::kHeld && !HasPendingJobs(**engine)) {
    clock.Accept();
  }
  if (const Status status = CommitGathered(engine->get(), store, clock); !status.ok()) {
    return Refuse("cannot write to the store", status, kExitCommitFailed);
  }
  DELAYD_CRASH_POINT("main/epoch_durable");
  const uint32_t connections_max = ConnectionsThatFit(config);
  http::RequestCounts counts(http::Router::RouteNames().size());
  const DiskReserveOptions disk{
      .directory = config.data_dir, .reserve = config.storage.reserve, .free_bytes = FreeBytes};
  Monitor monitor(
      {.version = std::string(Version()),
       .queues_by_name = config.metrics.queues,
       .connections_max = connections_max,
       .commit_stuck = config.health.commit_stuck,
       .disk = disk},
      engine->get(),
      [store] { return storage::ReadRocksFigures(*store); },
      &counts);
  monitor.Watch(&clock);
  monitor.Watch(&tls);
  HttpApi api(config, *access, &monitor, &counts, config.tls.on() ? &tls : nullptr);
  BeanstalkApi beanstalk(config, *access, started);
  Server server({.connections_max = connections_max,
                 .idle_timeout = config.limits.idle,
                 .held_bytes_max = 16 * config.limits.request_body,
                 .heartbeat_interval = notify.HeartbeatInterval(),
                 .heartbeat = [&notify] { notify.Heartbeat(); },
                 .reload =
                     [&] {
                       notify.Reloading();
                       std::optional<engine::Configure> settings = Reload(read_config, config);
                       if (settings) {
                         ReloadCertificate(config, &tls);
                         ReloadTokens(config, &*access);
                       }
                       notify.Reloaded("Serving");
                       return settings;
                     },
                 .slow_turn = config.slow.turn,
                 .slow_commit = config.slow.commit,
                 .trusted_clock = &clock,
                 .processors = processors->get(),
                 .turn_begins =
                     [&](const Now& now) {
                       api.SetTime(now);
                       WarnOfEnd(now.wall, &tls);
                     },
                 .stopping = [&notify] { notify.Stopping(); },
                 .disk = disk,
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

// RocksDB's files of a start. With less it fails in the midst of them, and leaves some each time.
constexpr uint64_t kStartBytesMin = uint64_t{1} << 20;

Status CheckRoomToStart(const std::string& data_dir) {
  const StatusOr<uint64_t> free = FreeBytes(data_dir);
  if (!free.ok() || *free >= kStartBytesMin) {
    return OkStatus();  // what cannot be asked is named when it is opened
  }
  return ResourceExhausted("the disk of " + data_dir + " is full, " + FormatSize(*free) +
                               " are left and a start needs " + FormatSize(kStartBytesMin) +
                               "; free some space",
                           "disk_full");
}

storage::RocksJobStoreOptions StoreOptionsOf(const Config& config) {
  storage::RocksJobStoreOptions options{.path = config.data_dir};
#ifdef DELAYD_CRASH_POINTS
  options.wal_bytes_max = kCrashTestWalBytes;
#endif
  return options;
}

int RunDaemon(const Config& config, const ReadConfig& read_config) {
  log::Start(config.log);
  // A reader of the log that goes away must not take the daemon along.
  std::signal(SIGPIPE, SIG_IGN);
  // A reload that comes before there is anything to reload must not end the start.
  std::signal(SIGHUP, SIG_IGN);
  // A file above the limit on sizes (LimitFSIZE=) is an error of its write, told as such.
  std::signal(SIGXFSZ, SIG_IGN);
  RaiseFileLimit(config);
  if (const Status status = CheckFileLimit(); !status.ok()) {
    return Refuse("cannot start", status, kExitFailed);
  }
  if (const Status status = CheckRoomToStart(config.data_dir); !status.ok()) {
    return Refuse("cannot open the data directory", status, kExitDataDir);
  }
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
  // Expected once; at any other time a disk is not mounted, or data_dir is wrong.
  if (recovery.made_store) {
    log::Info("the data directory held no jobs; a new store was made in it",
              {{"data_dir", config.data_dir}});
  }
  const int code = Serve(config, read_config, store->get(), clock, started);
  DELAYD_CRASH_POINT("main/served");
  if (const Status status = (*store)->Close(); !status.ok() && code == kExitOk) {
    return Refuse("cannot close the store", status, kExitFailed);
  }
  if (code == kExitOk) {
    log::Info("delayd has ended in order");
  }
  return code;
}

// What the files that the configuration names hold is part of it, and so is a device it asks for.
Status CheckNamedFiles(const Config& config) {
  DELAYD_RETURN_IF_ERROR(Access::Create(config.access).status());
  DELAYD_RETURN_IF_ERROR(ProcessorsOf(config).status());
  if (!config.tls.on()) {
    return OkStatus();
  }
  TlsDoor tls(config.tls.certificate, config.tls.key);
  DELAYD_RETURN_IF_ERROR(tls.Load());
  if (const Status status = tls.CheckEnd(SystemClock().Sample().wall); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());  // a start does not mind
  }
  return OkStatus();
}

int CheckConfig(const CommandLine& line) {
  const std::string source = line.config_file.empty() ? "no file, all defaults" : line.config_file;
  if (const Status status = CheckNamedFiles(line.config); !status.ok()) {
    std::fprintf(stderr, "%s: %s\n", source.c_str(), status.message().c_str());
    return kExitUsage;
  }
  std::printf("%s: the configuration is valid\n", source.c_str());
  // Neither a file that the daemon may not read nor one that its group may stops root.
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
      return CheckConfig(line);
    case CommandLine::Action::kVerify:
      return VerifyOffline(line.config.data_dir, line.repair);
    case CommandLine::Action::kRecover:
      return RecoverOffline(line.config.data_dir, line.accept_loss);
    case CommandLine::Action::kRun:
      break;
  }
  return RunDaemon(line.config, read_config);
}

}  // namespace
}  // namespace delayd

int main(int argc, char** argv) {
  delayd::ReserveStandardFds();
  delayd::InstallLastWords();
  return delayd::Main(argc, argv);
}
