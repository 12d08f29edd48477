#include "daemon/service.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/limits.h"
#include "base/signal_mask.h"
#include "daemon/access.h"
#include "daemon/awake_processors.h"
#include "daemon/command_line.h"
#include "daemon/disk_reserve.h"
#include "daemon/engine/engine.h"
#include "daemon/exit_codes.h"
#include "daemon/file_limit.h"
#include "daemon/front_ends.h"
#include "daemon/http/router.h"
#include "daemon/late_step.h"
#include "daemon/log.h"
#include "daemon/monitor.h"
#include "daemon/server.h"
#include "daemon/service_notify.h"
#include "daemon/store_admin.h"
#include "daemon/tls_session.h"
#include "daemon/trusted_clock.h"
#include "storage/free_memory.h"
#include "storage/optional_thread.h"
#include "storage/recovery.h"
#include "storage/rocks_job_store.h"

namespace delayd {
namespace {

// Logs one line: the step, and the status, which gives the cause and the cure.
int Refuse(std::string_view step, const Status& status, ExitCode otherwise) {
  log::LastError(step, {{"code", status.reason()}, {"detail", status.message()}});
  return ExitCodeOf(status, otherwise);
}

// A clock that is off by 2 s is noticed.
constexpr Millis kClockNoteMin{1000};
// This many deleted rows cost a scan 13 us. One row in every batch of a single job had cost a tenth
// of its commit.
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
          .jobs_per_mark = kJobsPerMark,
          .stopwatch = [] {
            return std::chrono::duration_cast<Millis>(
                std::chrono::steady_clock::now().time_since_epoch());
          }};
}

uint64_t PendingJobs(const engine::Engine& engine) {
  const engine::StatsView stats = engine.stats();
  return stats.scheduled + stats.ready;
}

DiskReserveOptions DiskOf(const Config& config) {
  return {.directory = config.data_dir,
          .reserve = config.storage.reserve,
          .free_bytes = FreeBytes,
          .free_files = FreeFiles,
          .is_read_only = IsReadOnly};
}

// Blocks or unblocks the signals for reload and drain, which must not kill the process while no
// server handles them. A signal during the start is handled once it is over; one that comes while
// the store is being closed is too late.
void MaskWishes(int how) {
  MaskSignals(how, {SIGHUP, SIGUSR1});
}

// Serves from an open store until the end. Each step returns the exit code of its failure, or
// kExitOk.
class Service {
 public:
  Service(const Config& config,
          const ReadConfig& read_config,
          storage::JobStore* store,
          const Clock& machine,
          BootTime started)
      : config_(config),
        read_config_(read_config),
        store_(store),
        machine_(machine),
        started_(started),
        tls_(config.tls.certificate, config.tls.key) {}

  int Run();

 private:
  int OpenWhatIsNamed();
  int LoadJobs();
  Status CommitGathered();
  int Serve();
  ServerOptions OptionsOfServer(uint32_t connections_max, FrontEnds* front_ends);
  ServerOptions::ApplyReload Reload();
  std::string Doing() const;
  void LogReady(const std::string& listening) const;

  const Config& config_;
  const ReadConfig& read_config_;
  storage::JobStore* const store_;
  const Clock& machine_;
  const BootTime started_;
  const ServiceNotify notify_{};
  TlsDoor tls_;
  std::optional<Access> access_;
  std::unique_ptr<AwakeProcessors> processors_;  // null: the processors may sleep
  std::optional<TrustedClock> clock_;
  std::unique_ptr<engine::Engine> engine_;
  bool reload_refused_ = false;  // the last reload was refused at least in part
};

int Service::Run() {
  notify_.Loading(0);
  int code = OpenWhatIsNamed();
  if (code == kExitOk) {
    code = LoadJobs();
  }
  return code == kExitOk ? Serve() : code;
}

// Opens what the configuration names besides the store.
int Service::OpenWhatIsNamed() {
  const auto place_of = [this](std::string_view key) { return config_.PlaceOf(key); };
  StatusOr<Access> access = Access::Create(config_.access, place_of);
  if (!access.ok()) {
    return Refuse("cannot tell who may do what", access.status(), ExitCodeOfNamed(access.status()));
  }
  access_.emplace(std::move(*access));
  if (const Status status = config_.tls.on() ? tls_.Load(place_of) : OkStatus(); !status.ok()) {
    return Refuse("cannot use TLS", status, kExitUsage);
  }
  WarnOfEnd(machine_.Sample().wall, &tls_);
  StatusOr<std::unique_ptr<AwakeProcessors>> processors =
      AwakeProcessors::Open(config_.processors.awake);
  if (!processors.ok()) {
    return Refuse("cannot keep the processors awake",
                  processors.status().WithContext(place_of("processors.awake")),
                  kExitUsage);
  }
  processors_ = std::move(*processors);
  return kExitOk;
}

int Service::LoadJobs() {
  const StatusOr<std::optional<engine::ClockSeen>> seen = ReadClockSeen(*store_);
  if (!seen.ok()) {
    return Refuse("cannot read when the last run was", seen.status(), kExitFailed);
  }
  clock_.emplace(&machine_, config_.clock, *seen, CurrentBootId());
  engine::EngineOptions options = EngineOptionsOf(config_);
  options.machine_wall = machine_.Sample().wall;
  StatusOr<std::unique_ptr<engine::Engine>> engine =
      engine::Engine::Load(options, *store_, clock_->Sample(), [&](uint64_t timers) {
        notify_.Loading(timers);
        log::Debug("loading", {{"timers", timers}});
      });
  if (!engine.ok()) {
    return Refuse("cannot load the jobs", engine.status(), kExitFailed);
  }
  engine_ = std::move(*engine);
  DELAYD_CRASH_POINT("main/loaded");
  // Without jobs there is nothing that a wrong clock could make due or expire, and after a long
  // idle time even a right clock seems to have jumped.
  if (clock_->state() == engine::ClockState::kHeld && PendingJobs(*engine_) == 0) {
    clock_->Accept();
  }
  if (const Status status = CommitGathered(); !status.ok()) {
    return Refuse("cannot write to the store", status, kExitCommitFailed);
  }
  DELAYD_CRASH_POINT("main/epoch_durable");
  return kExitOk;
}

// The new epoch and the repairs made while loading must be durable before the first request.
Status Service::CommitGathered() {
  while (const std::optional<engine::SealedBatch> batch = engine_->Seal(clock_->Sample())) {
    DELAYD_RETURN_IF_ERROR(store_->Commit(*batch->batch));
    engine_->Committed(batch->sequence);
  }
  return engine_->fatal();
}

int Service::Serve() {
  const uint32_t connections_max = ConnectionsThatFit(config_.limits.connections);
  http::RequestCounts counts(http::Router::RouteNames().size());
  Monitor monitor(
      {.version = std::string(Version()),
       .queues_by_name = config_.metrics.queues,
       .connections_max = connections_max,
       .counts_users = config_.limits.jobs_per_user != 0,
       .commit_stuck = config_.health.commit_stuck,
       .disk = DiskOf(config_)},
      engine_.get(),
      [this] { return storage::ReadRocksFigures(*store_); },
      &counts);
  FrontEnds front_ends({.config = &config_,
                        .access = &*access_,
                        .service = &monitor,
                        .counts = &counts,
                        .tls = config_.tls.on() ? &tls_ : nullptr,
                        .started = started_});
  Server server(OptionsOfServer(connections_max, &front_ends), engine_.get(), store_, &*clock_);
  monitor.Watch(&*clock_);
  monitor.Watch(&tls_);
  monitor.Watch(&server);
  const StatusOr<std::string> listening = front_ends.ListenOn(&server);
  if (!listening.ok()) {
    return Refuse("cannot listen", listening.status(), kExitFailed);
  }
  LogReady(*listening);
  DELAYD_CRASH_POINT("main/before_ready");
  notify_.Ready(PendingJobs(*engine_));
  MaskWishes(SIG_UNBLOCK);
  const Status status = server.Run();
  MaskWishes(SIG_BLOCK);
  return status.ok() ? kExitOk : ExitCodeOf(status, kExitCommitFailed);  // Run has logged why
}

ServerOptions Service::OptionsOfServer(uint32_t connections_max, FrontEnds* front_ends) {
  return {.connections_max = connections_max,
          .idle_timeout = config_.limits.idle,
          .held_bytes_max = 16 * config_.limits.request_body,
          .heartbeat_interval = notify_.HeartbeatInterval(),
          .heartbeat = [this] { notify_.Heartbeat(); },
          .drain_changed = [this] { notify_.Doing(Doing()); },
          .reloading = [this] { notify_.Reloading(); },
          .reload = [this] { return Reload(); },
          .slow_turn = config_.slow.turn,
          .slow_commit = config_.slow.commit,
          .commit_stuck = config_.health.commit_stuck,
          .trusted_clock = &*clock_,
          .processors = processors_.get(),
          .turn_begins =
              [this, front_ends](const Now& now) {
                front_ends->BeginTurn(now);
                WarnOfEnd(now.wall, &tls_);
              },
          .stopping = [this] { notify_.Stopping(); },
          .disk = DiskOf(config_),
          .give_back_memory = storage::GiveBackFreeMemory,
          .admin = MakeStoreAdmin(store_, config_.data_dir, &machine_)};
}

// Runs outside the turn; the function that it returns runs in a turn.
ServerOptions::ApplyReload Service::Reload() {
  return [this, files = ReadFiles(read_config_, config_, tls_, *access_)]() mutable {
    reload_refused_ = !files.ok();
    std::optional<engine::Configure> settings = Apply(std::move(files), config_, &tls_, &*access_);
    notify_.Reloaded(Doing());
    return settings;
  };
}

// The text that `systemctl status` shows.
std::string Service::Doing() const {
  const std::string what = engine_->draining() ? "Draining: no new jobs are taken" : "Serving";
  return reload_refused_ ? what + "; the last reload was refused: see the log" : what;
}

void Service::LogReady(const std::string& listening) const {
  log::Info("delayd is ready",
            {{"version", Version()},
             {"data_dir", config_.data_dir},
             {"listen", listening},
             {"timers", PendingJobs(*engine_)},
             {"dead", engine_->stats().dead},
             {"start_ms", (clock_->Sample().boot - started_).count()}});
}

storage::RocksJobStoreOptions StoreOptionsOf(const Config& config) {
  storage::RocksJobStoreOptions options{.path = config.data_dir};
#ifdef DELAYD_CRASH_POINTS
  options.wal_bytes_max = kCrashTestWalBytes;
#endif
  return options;
}

// Ignores or blocks signals that would kill the process needlessly, and unblocks those to stop:
// what the parent process has blocked is inherited, and only a SIGKILL would end the daemon then.
void SettleSignals() {
  MaskSignals(SIG_UNBLOCK, {SIGTERM, SIGINT});
  // The daemon must survive when the reader of its log goes away.
  std::signal(SIGPIPE, SIG_IGN);
  // Exceeding the file size limit (LimitFSIZE=) is then reported as an error of the write.
  std::signal(SIGXFSZ, SIG_IGN);
  // It has no meaning here, but other daemons rotate their logs on it.
  std::signal(SIGUSR2, SIG_IGN);
  MaskWishes(SIG_BLOCK);
}

// Logs upkeep that the store has to put off; the store reports it from threads of its own.
void LogUpkeepPutOff() {
  storage::OnThreadRefused([](const std::string& why) {
    log::Warn(
        "the store gets no thread for its upkeep; it goes on and tries again. Raise the limit of "
        "processes (ulimit -u, TasksMax= or LimitNPROC= of the unit, pids.max of a container)",
        {{"cause", why}});
  });
  storage::OnMergeRefused([](const std::string& what) {
    log::Warn(
        "the disk has no room to merge tables; reads become slower, and the space of jobs that are "
        "gone does not come back. Free some space, or raise the quota: then the merge is tried "
        "again within a minute",
        {{"detail", what}});
  });
}

StatusOr<std::unique_ptr<storage::JobStore>> OpenStore(const Config& config) {
  storage::RecoveryReport recovery;
  StatusOr<std::unique_ptr<storage::JobStore>> store =
      storage::OpenRocksJobStore(StoreOptionsOf(config), &recovery);
  for (const std::string& line : recovery.Lines()) {
    log::Warn("recovery", {{"detail", line}});
  }
  // Expected once. At any other time a disk is not mounted, or data_dir is wrong.
  if (store.ok() && recovery.made_store) {
    log::Info("the data directory held no jobs; a new store was made in it",
              {{"data_dir", config.data_dir}});
  }
  return store;
}

// No client is served any more, and without a log line a slow disk would make the daemon seem to
// hang.
Status CloseStore(storage::JobStore* store) {
  Status status;
  RunAndTellWhenLate(
      std::chrono::seconds(1),
      [] { log::Info("closing the store: waiting for the disk, to which what is in memory goes"); },
      [&] { status = store->Close(); });
  return status;
}

}  // namespace

int RunService(const Config& config, const ReadConfig& read_config) {
  log::Start(config.log);
  for (const std::string& warning : MisspeltVariables(::environ)) {
    log::Warn("an environment variable is ignored", {{"detail", warning}});
  }
  SettleSignals();
  RaiseFileLimit();
  if (const Status status = CheckFileLimit(); !status.ok()) {
    return Refuse("cannot start", status, kExitFailed);
  }
  LogUpkeepPutOff();
  const SystemClock clock;
  const BootTime started = clock.Sample().boot;
  const StatusOr<std::unique_ptr<storage::JobStore>> store = OpenStore(config);
  if (!store.ok()) {
    return Refuse("cannot open the data directory", store.status(), kExitDataDir);
  }
  const int code = Service(config, read_config, store->get(), clock, started).Run();
  DELAYD_CRASH_POINT("main/served");
  if (const Status status = CloseStore(store->get()); !status.ok() && code == kExitOk) {
    return Refuse("cannot close the store", status, kExitFailed);
  }
  log::TellLeftOut();
  if (code == kExitOk) {
    log::Info("delayd has ended in order");
  }
  return code;
}

}  // namespace delayd
