#include "daemon/server.h"

#include <algorithm>
#include <array>

#include "daemon/log.h"
#include "daemon/server_loop.h"

#include <boost/asio/post.hpp>

namespace delayd {

namespace {

constexpr size_t kReadBytes = size_t{64} * 1024;
// The longest that a turn spends on reading.
constexpr std::chrono::milliseconds kReadPerTurn{50};
// A sleeping processor takes about this long to resume the thread (docs/decisions/0091).
constexpr Micros kWakeAhead{50};
// Load alone does not delay a wake-up by this much: the process was stopped, or the machine slept.
constexpr Millis kLateWake{5000};

constexpr std::array<uint64_t, 16> kCommitBoundsUs = {100,
                                                      250,
                                                      500,
                                                      1'000,
                                                      2'500,
                                                      5'000,
                                                      10'000,
                                                      25'000,
                                                      50'000,
                                                      100'000,
                                                      250'000,
                                                      500'000,
                                                      1'000'000,
                                                      2'500'000,
                                                      5'000'000,
                                                      30'000'000};
constexpr std::array<uint64_t, 11> kBatchBoundsJobs = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
constexpr std::array<uint64_t, 8> kBatchBoundsBytes = {
    256, 1024, 4096, 16384, 65536, 262'144, 1'048'576, 4'194'304};

}  // namespace

Server::Server(const ServerOptions& options,
               engine::Engine* engine,
               storage::JobStore* store,
               const Clock* clock)
    : loop_(std::make_unique<Loop>(options, engine, store, clock)) {}

Server::~Server() = default;

void Server::Listen(Listener listener, SessionFactory factory, std::string no_room) {
  loop_->Listen(std::move(listener), std::move(factory), std::move(no_room));
}

Status Server::Run() {
  return loop_->Run();
}

void Server::Stop() {
  loop_->Stop();
}

ServerFigures Server::Figures(const Now& now) const {
  return loop_->Figures(now);
}

Server::Loop::Loop(const ServerOptions& options,
                   engine::Engine* engine,
                   storage::JobStore* store,
                   const Clock* clock)
    : options_(options),
      timeouts_({.idle = options.idle_timeout,
                 .head = options.head_timeout,
                 .linger = options.linger_timeout}),
      engine_(engine),
      clock_(clock),
      stop_event_(io_),
      drain_signal_(io_),
      hangups_(io_, SIGHUP),
      wake_(&io_, [] { log::Info("the wall clock was set; absolute due times follow it"); }),
      on_readable_([this](const ConnectionPtr& connection) {
        if (connection->session().greets()) {
          greeting_.push_back(connection);
        } else {
          Read(connection);
        }
      }),
      on_writable_([this](const ConnectionPtr& connection) { Touch(connection); }),
      on_hangup_([this](const ConnectionPtr& connection) { Touch(connection); }),
      read_buffer_(kReadBytes),
      commit_watch_(options.commit_late, options.commit_stuck),
      figures_{.commit_us = Histogram(kCommitBoundsUs),
               .commit_jobs = Histogram(kBatchBoundsJobs),
               .commit_bytes = Histogram(kBatchBoundsBytes)},
      committer_(
          store,
          [this](uint64_t sequence, Status status) {
            const auto at = std::chrono::steady_clock::now();
            boost::asio::post(io_, [this, at, sequence, status = std::move(status)]() mutable {
              commit_result_ = CommitResult{sequence, std::move(status), at};
            });
          },
          DiskReserve(options.disk),
          [this](Status refusal) {
            boost::asio::post(io_, [this, refusal = std::move(refusal)] { DiskChanged(refusal); });
          },
          CommitWatch(options.commit_late, options.commit_stuck)) {
  // Here rather than in Run: whoever learns that the daemon is ready may send a signal at once.
  WaitForSignal();
  WaitForDrainSignal();
  WaitForHangup();
}

Status Server::Loop::Run() {
  heartbeat_due_ = clock_->Sample().boot;
  // The first turn does what loading left over; later turns follow a wake-up.
  Status status = TimedTurn(std::chrono::steady_clock::now());
  while (status.ok() && !(stopping_ && stop_complete(clock_->Sample()))) {
    status = TimedTurn(Wait());
  }
  return status;
}

// Returns when the next turn began: reading for it counts as part of it.
std::chrono::steady_clock::time_point Server::Loop::Wait() {
  if (!turn_again_) {
    io_.run_one();
    StayAwake();
  }
  const auto begin = std::chrono::steady_clock::now();
  ReadUntil(begin + kReadPerTurn);
  Greet();
  return begin;
}

// This terminates, because a socket that was read is armed again only at the end of the turn. The
// next turn begins with the handlers that are left.
void Server::Loop::ReadUntil(std::chrono::steady_clock::time_point end) {
  while (io_.poll_one() > 0 && std::chrono::steady_clock::now() < end) {
  }
}

// Polls until the job that a request waits for is due, or until a handler runs.
void Server::Loop::StayAwake() {
  if (!due_awaited_ || !touched_.empty() || commit_result_) {
    return;  // nobody waits for a job, or the wake-up brought work to do
  }
  const Micros until = *due_awaited_ - clock_->Sample().exact_boot();
  if (until > kWakeAhead) {
    return;
  }
  NoteWork(clock_->Sample());
  const auto end = std::chrono::steady_clock::now() + until;
  while (io_.poll_one() == 0 && std::chrono::steady_clock::now() < end) {
  }
}

Status Server::Loop::TimedTurn(std::chrono::steady_clock::time_point begin) {
  slowest_ = {};
  commit_here_ = Millis(0);
  Status status = Turn();
  last_turn_ = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - begin);
  if (last_turn_ > options_.slow_turn) {
    ++figures_.slow_turns;
    log::Warn("slow turn",
              {{"ms", last_turn_.count()},
               {"connections", connections_.size()},
               {"slowest_command", slowest_.name},
               {"slowest_ms", std::chrono::duration_cast<Millis>(slowest_.took).count()},
               {"commit_ms", commit_here_.count()}});
  }
  return status;
}

Status Server::Loop::Turn() {
  turn_again_ = false;
  ++figures_.turns;
  if (commit_result_) {
    // Its answers go out before the leases of clients that have gone are collected.
    DELAYD_RETURN_IF_ERROR(TakeCommit(*std::exchange(commit_result_, std::nullopt)));
  }
  // After the reads: a delay must not count from a moment before its request arrived.
  Now now = clock_->Sample();
  NoteLateWake(now);
  TendClock(&now);
  TendProcessors(now);
  if (options_.turn_begins) {
    options_.turn_begins(now);
  }
  GiveBackSome(now);  // before requests of clients that know that the worker has gone
  ServeTouched(&now);
  CheckDeadlines(now);
  TendReload(now);
  if (stop_wanted_ && !stopping_) {
    BeginStop(now);
  }
  now = clock_->Sample();  // for jobs that fell due while clients were served
  turn_again_ = engine_->Advance(now) || turn_again_;
  if (!engine_->fatal().ok()) {
    return FailAll(engine_->fatal());
  }
  // Answers that wait for no commit go out before one is begun, on this thread or another.
  SendReady();
  DELAYD_RETURN_IF_ERROR(Submit(now));
  WatchCommit(now);
  DeliverReplies();
  FinishTouched(now);
  MakeRoom(now);
  TendMemory(now);
  WaitForMoreClients(now);
  turn_again_ = turn_again_ || !greeting_.empty();
  LogIncidents();
  LogDrain();
  Beat(now);
  AskForWake(now);
  return OkStatus();
}

// A SIGSTOP, a suspend or a paused machine leaves no trace other than late jobs. The time that the
// last turn itself took is reported as a slow turn.
void Server::Loop::NoteLateWake(const Now& now) {
  const Micros late = wake_asked_ ? now.exact_boot() - *wake_asked_ - last_turn_ : Micros(0);
  if (late >= kLateWake) {
    ++figures_.late_wakes;
    log::Warn("the daemon was not run for a while; what fell due meanwhile is late",
              {{"ms", std::chrono::floor<Millis>(late).count()}});
  }
}

// When a suspect clock turns out to be right, the engine must be told.
void Server::Loop::TendClock(Now* now) {
  if (options_.trusted_clock != nullptr && options_.trusted_clock->Tend()) {
    *now = clock_->Sample();
    engine_->Execute(next_request_++, engine::AcceptClock{}, *now);
  }
}

// A sleeping processor makes the next client wait (docs/decisions/0092).
void Server::Loop::NoteWork(const Now& now) {
  if (options_.processors != nullptr) {
    options_.processors->Work(now.boot);
  }
}

void Server::Loop::TendProcessors(const Now& now) {
  if (!touched_.empty()) {
    NoteWork(now);
  }
  if (options_.processors != nullptr) {
    options_.processors->Tend(now.boot);
  }
}

void Server::Loop::LogIncidents() {
  for (const Status& incident : engine_->TakeIncidents()) {
    log::Error("damaged record", {{"code", incident.reason()}, {"detail", incident.message()}});
  }
}

ServerFigures Server::Loop::Figures(const Now& now) const {
  ServerFigures figures = figures_;
  figures.connections = connections_.size();
  figures.stopping = stopping_;
  if (in_flight_) {
    figures.commit_running = now.boot - submitted_boot_;
  }
  if (options_.processors != nullptr) {
    figures.processors_awake = options_.processors->AwakeFor(now.boot);
  }
  return figures;
}

void Server::Loop::Beat(const Now& now) {
  if (options_.heartbeat_interval && now.boot >= heartbeat_due_) {
    options_.heartbeat();
    heartbeat_due_ = now.boot + *options_.heartbeat_interval;
  }
}

void Server::Loop::AskForWake(const Now& now) {
  const std::optional<BootMicros> event = NextEvent(now);
  due_awaited_ = engine_->IsAwaited() ? event : std::nullopt;
  wake_asked_ = NextWake(event, now);
  wake_.SetDeadline(due_awaited_ ? std::min(*due_awaited_ - kWakeAhead, *wake_asked_)
                                 : wake_asked_);
}

// The engine's next event: a job falls due, or a lease ends.
std::optional<BootMicros> Server::Loop::NextEvent(const Now& now) const {
  const std::optional<Micros> event = engine_->UntilNextEvent(now);
  if (!event) {
    return std::nullopt;
  }
  // Anything due now has been advanced over, or turn_again_ is set; no wake-up is needed for it.
  return now.exact_boot() + (event->count() == 0 ? Millis(1) : *event);
}

std::optional<BootMicros> Server::Loop::NextWake(std::optional<BootMicros> event,
                                                 const Now& now) const {
  std::optional<BootMicros> wake = event;
  const auto earlier = [&wake](BootMicros time) { wake = wake ? std::min(*wake, time) : time; };
  if (!deadlines_.empty()) {
    earlier(deadlines_.top().first);
  }
  if (options_.trusted_clock != nullptr && options_.trusted_clock->wake()) {
    earlier(*options_.trusted_clock->wake());
  }
  if (options_.processors != nullptr && options_.processors->wake()) {
    earlier(*options_.processors->wake());
  }
  for (const std::unique_ptr<Door>& door : doors_) {
    if (door->rests_until) {
      earlier(*door->rests_until);
    }
  }
  if (memory_look_) {
    earlier(*memory_look_);
  }
  if (commit_look_) {
    earlier(submitted_boot_ + *commit_look_);
  }
  if (options_.heartbeat_interval) {
    earlier(heartbeat_due_);
  }
  if (stopping_ && now.boot < stop_deadline_) {
    earlier(stop_deadline_);  // after it only the commit in flight is awaited, which wakes us
  }
  return wake;
}

bool Server::Loop::under_pressure() const {
  return engine_->uncommitted_bytes() > options_.uncommitted_bytes_max;
}

}  // namespace delayd
