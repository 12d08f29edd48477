#include "daemon/server.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "base/crash_point.h"
#include "daemon/log.h"
#include "daemon/server_loop.h"

#include <boost/asio/post.hpp>

namespace delayd {

namespace {

constexpr size_t kReadBytes = size_t{64} * 1024;
// Requests of one connection in one turn; the others have theirs before it goes on.
constexpr int kRequestsPerTurn = 256;
// Of them, those that are answered on the spot because the next is held up behind them. More would
// save turns, but fill the commits that others wait for (docs/decisions/0080).
constexpr int kAnswersPerTurn = 8;
// All connections together: what a thousand get that each ask for large jobs is counted and sent
// only at the end of the turn. Less would cost those their place who ask one thing at a time.
constexpr std::chrono::milliseconds kServePerTurn{250};
// One of them alone: 256 requests that each take milliseconds, which cost nothing to send, are no
// reason why all others should wait for them.
constexpr std::chrono::milliseconds kServeOnePerTurn{10};
// And to be read from.
constexpr std::chrono::milliseconds kReadPerTurn{50};

// Whoever has more requests under way pipelines (docs/decisions/0047).
constexpr size_t kOutstandingMax = 2;  // an ack, and the next lease
// A sleeping processor takes about so long to run us (docs/decisions/0091).
constexpr Micros kWakeAhead{50};
// Waking later than this was no busy machine: the process was stopped, or the machine slept.
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

bool ChangesJobs(const engine::Command& command) {
  return std::holds_alternative<engine::Enqueue>(command) ||
         std::holds_alternative<engine::Cancel>(command) ||
         std::holds_alternative<engine::CancelIds>(command) ||
         std::holds_alternative<engine::Reschedule>(command) ||
         std::holds_alternative<engine::ChangeMany>(command) ||
         std::holds_alternative<engine::Ack>(command) ||
         std::holds_alternative<engine::AckMany>(command) ||
         std::holds_alternative<engine::Nack>(command) ||
         std::holds_alternative<engine::Bury>(command) ||
         std::holds_alternative<engine::LeaseJob>(command) ||  // a dead one is pending from then on
         std::holds_alternative<engine::Touch>(command) ||
         std::holds_alternative<engine::Kick>(command) ||
         std::holds_alternative<engine::KickQueue>(command) ||
         std::holds_alternative<engine::Pause>(command) ||
         std::holds_alternative<engine::Resume>(command) ||
         std::holds_alternative<engine::AcceptClock>(command);
}

bool HandsOut(const engine::Command& command) {
  return std::holds_alternative<engine::Lease>(command) ||
         std::holds_alternative<engine::LeaseJob>(command);
}

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
      signals_(io_),
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
  // Not in Run: whoever is told that the daemon is ready may stop it at once.
  WaitForSignal();
  WaitForDrainSignal();
  WaitForHangup();
}

Status Server::Loop::Run() {
  heartbeat_due_ = clock_->Sample().boot;
  // What loading left to do comes first, then whatever wakes us.
  Status status = TimedTurn(std::chrono::steady_clock::now());
  while (status.ok() && !(stopping_ && stop_complete(clock_->Sample()))) {
    status = TimedTurn(Wait());
  }
  return status;
}

void Server::Loop::Stop() {
  stop_wanted_ = true;
}

// When the turn began that follows: with what is read for it.
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

// Ends: a socket that was read is waited for again only at the end of the turn. What is left is the
// first of the next.
void Server::Loop::ReadUntil(std::chrono::steady_clock::time_point end) {
  while (io_.poll_one() > 0 && std::chrono::steady_clock::now() < end) {
  }
}

// Until the job is due that somebody waits for, or a socket has something.
void Server::Loop::StayAwake() {
  if (!due_awaited_ || !touched_.empty() || commit_result_) {
    return;  // nobody waits, or what ended the sleep is to be worked on
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
    // Its answers go out before a client that has gone is asked what it holds.
    DELAYD_RETURN_IF_ERROR(TakeCommit(*std::exchange(commit_result_, std::nullopt)));
  }
  // After the reads: a delay must not count from a moment before its request had arrived.
  Now now = clock_->Sample();
  NoteLateWake(now);
  TendClock(&now);
  TendProcessors(now);
  if (options_.turn_begins) {
    options_.turn_begins(now);
  }
  GiveBackSome(now);  // before whoever saw that their worker has gone asks for them
  ServeTouched(&now);
  CheckDeadlines(now);
  TendReload(now);
  if (stop_wanted_ && !stopping_) {
    BeginStop(now);
  }
  now = clock_->Sample();  // for what fell due while they were served
  turn_again_ = engine_->Advance(now) || turn_again_;
  if (!engine_->fatal().ok()) {
    return FailAll(engine_->fatal());
  }
  // What waits for no commit goes out before one is begun, on this thread or another.
  SendReady();
  DELAYD_RETURN_IF_ERROR(Submit(now));
  WatchCommit(now);
  DeliverReplies();
  FinishTouched(now);
  MakeRoom(now);
  TendMemory(now);
  WaitForMoreClients();
  turn_again_ = turn_again_ || !greeting_.empty();
  LogIncidents();
  LogDrain();
  if (options_.heartbeat_interval && now.boot >= heartbeat_due_) {
    options_.heartbeat();
    heartbeat_due_ = now.boot + *options_.heartbeat_interval;
  }
  due_awaited_ = engine_->IsAwaited() ? NextEvent(now) : std::nullopt;
  wake_asked_ = NextWake(now);
  wake_.SetDeadline(due_awaited_ ? std::min(*due_awaited_ - kWakeAhead, *wake_asked_)
                                 : wake_asked_);
  return OkStatus();
}

// A stop by signal, a suspend or a paused machine leaves no other trace than late jobs. What the
// last turn itself took is told as a slow turn.
void Server::Loop::NoteLateWake(const Now& now) {
  const Micros late = wake_asked_ ? now.exact_boot() - *wake_asked_ - last_turn_ : Micros(0);
  if (late >= kLateWake) {
    ++figures_.late_wakes;
    log::Warn("the daemon was not run for a while; what fell due meanwhile is late",
              {{"ms", std::chrono::floor<Millis>(late).count()}});
  }
}

// A clock that is suspect may be found right, and then the engine must know it as such.
void Server::Loop::TendClock(Now* now) {
  if (options_.trusted_clock != nullptr && options_.trusted_clock->Tend()) {
    *now = clock_->Sample();
    engine_->Execute(next_request_++, engine::AcceptClock{}, *now);
  }
}

// A processor that sleeps makes the next client wait (docs/decisions/0092).
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

// While some are served others ask: they shall share the commit. Each is read once a turn.
void Server::Loop::ServeTouched(Now* now) {
  const auto end = std::chrono::steady_clock::now() + kServePerTurn;
  for (size_t served = 0; served < touched_.size();) {
    for (; served < touched_.size(); ++served) {
      if (std::chrono::steady_clock::now() > end) {
        ServeFirstNextTurn(served, *now);
        return;
      }
      Serve(ConnectionPtr(touched_[served]), end, now);  // a copy: answers may touch others
      DeliverReplies();  // within the time that they have: to write a large answer takes some
    }
    if (!in_flight_ && !pipelined_ && served < connections_.size()) {
      ReadUntil(end);
      *now = clock_->Sample();
    }
  }
}

// Those from here on had nothing in this turn.
void Server::Loop::ServeFirstNextTurn(size_t begin, const Now& now) {
  std::rotate(
      touched_.begin(), touched_.begin() + static_cast<std::ptrdiff_t>(begin), touched_.end());
  const size_t waiting = touched_.size() - begin;
  std::for_each_n(touched_.begin(), waiting, [this, &now](const ConnectionPtr& connection) {
    connection->unserved = true;
    if (connection->gone()) {
      Leave(connection.get(), now);  // before Advance hands a job to nobody
    }
  });
}

// Gives the engine what the client has asked, as far as there is room and time.
void Server::Loop::Serve(const ConnectionPtr& connection,
                         std::chrono::steady_clock::time_point until,
                         Now* moment) {
  const Now& now = *moment;
  if (connection->gone()) {
    Leave(connection.get(), now);  // before Advance hands a job to nobody
    return;
  }
  connection->unserved = false;
  int taken = 0;
  auto begin = std::chrono::steady_clock::now();
  until = std::min(until, begin + kServeOnePerTurn);
  for (; taken < kRequestsPerTurn && begin <= until; ++taken) {
    std::optional<SessionRequest> request = connection->NextRequest(now, under_pressure());
    if (!request && taken < kAnswersPerTurn && connection->session().held_up()) {
      DeliverReplies();
      request = connection->NextRequest(now, under_pressure());
    }
    if (!request) {
      break;
    }
    if (request->admin) {
      StartAdmin(connection, request->tag, *std::move(request->admin));
      continue;
    }
    const engine::RequestId id = next_request_++;
    pending_.emplace(
        id,
        Pending{.connection = connection,
                .tag = request->tag,
                .is_lease = HandsOut(request->command),
                .names_job = std::holds_alternative<engine::LeaseJob>(request->command),
                .changes = ChangesJobs(request->command)});
    connection->pending.push_back(id);
    if (options_.trusted_clock != nullptr &&
        std::holds_alternative<engine::AcceptClock>(request->command)) {
      options_.trusted_clock->Accept();
      *moment = clock_->Sample();
    }
    const std::string_view name = engine::CommandName(request->command);
    engine_->Execute(id, std::move(request->command), now);
    const auto end = std::chrono::steady_clock::now();
    const auto took = end - std::exchange(begin, end);
    if (took > slowest_.took) {
      slowest_ = {.name = name, .took = took};
    }
  }
  if (taken > 0) {
    ++clients_;
    connection->pipelines = connection->pipelines || connection->pending.size() > kOutstandingMax;
    pipelined_ = pipelined_ || connection->pipelines;
  }
  Session& session = connection->session();
  connection->held_back = taken == kRequestsPerTurn || begin > until || waits_for_room(session) ||
                          !session.wants_input() || session.has_more();
  if (connection->input_ended() && !connection->held_back) {
    session.InputEnded();
    if (connection->hung_up()) {
      GiveUpLeases(connection.get(), now);  // before Advance hands a job to nobody
    }
  } else if (connection->hung_up() && !session.wants_input() && AwaitsLease(*connection)) {
    // What it has sent behind them is not read: their answers would find it gone.
    session.InputEnded();
    GiveUpLeases(connection.get(), now);
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

void Server::Loop::DeliverReplies() {
  std::vector<engine::Reply> replies = engine_->TakeReplies();
  for (engine::Reply& reply : replies) {
    DeliverReply(&reply);
  }
  unsent_ = unsent_ || !replies.empty();
}

void Server::Loop::SendReady() {
  DeliverReplies();
  if (!std::exchange(unsent_, false)) {
    return;
  }
  for (const ConnectionPtr& connection : touched_) {
    connection->Write();  // how that went is seen at the end of the turn
  }
}

void Server::Loop::DeliverReply(engine::Reply* reply) {
  const auto found = pending_.find(reply->request);
  if (found == pending_.end()) {
    return;  // its client has gone
  }
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  if (auto* stats = std::get_if<Indirect<engine::StatsView>>(&reply->body);
      stats != nullptr && options_.trusted_clock != nullptr) {
    (*stats)->clock = engine::ClockStateName(options_.trusted_clock->state());
  }
  // Mostly the first of them.
  std::vector<engine::RequestId>& waiting = pending.connection->pending;
  const auto at = std::ranges::find(waiting, reply->request);
  DELAYD_CHECK(at != waiting.end());
  waiting.erase(at);
  NoteDamage(reply->status);
  DELAYD_CRASH_POINT("server/before_reply");
  pending.connection->session().Answer(pending.tag, *reply);
  Touch(pending.connection);
}

void Server::Loop::FinishTouched(const Now& now) {
  // A copy: whoever is still held back is looked at again in the next turn.
  std::vector<ConnectionPtr> touched;
  touched.swap(touched_);
  unsent_ = false;
  for (const ConnectionPtr& connection : touched) {
    connection->touched = false;
    if (FinishOne(connection, now)) {
      Touch(connection);
    }
  }
}

// Sends, waits for more, or lets go. True: look at it again in the next turn.
bool Server::Loop::FinishOne(const ConnectionPtr& connection, const Now& now) {
  if (connection->input_ended() && !connection->held_back && !connection->unserved) {
    // It gets what is there now; a client that asks nothing more does not wait for later jobs.
    EndWaits(*connection, now);
  }
  DELAYD_CRASH_POINT("server/before_send");
  const bool all_sent = connection->Write();
  DELAYD_CRASH_POINT("server/after_send");
  Session& session = connection->session();
  const bool done = session.finished() && all_sent;
  if (connection->gone() || (done && (connection->input_ended() || stopping_))) {
    Drop(connection, now);
    return false;
  }
  if (done) {
    Leave(connection.get(), now);
    connection->BeginLinger(now.boot);
  }
  if (!all_sent) {
    connection->ArmWrite(on_writable_);
  }
  NoteHeld(connection.get(), session.held_bytes());
  connection->NoteTime(now.boot);
  QueueDeadline(connection);
  if (waits_for_room(session)) {
    return true;  // the commit that makes room wakes us
  }
  const bool wants_input = session.wants_input();
  if (wants_input) {
    connection->ArmRead(on_readable_);
  } else {
    connection->ArmHangup(on_hangup_);
  }
  // There may be whole requests in the session's buffer, and no byte may follow to wake us. Where
  // there is no room, an answer or the client's reading makes it, and touches the connection.
  const bool again =
      session.has_more() || (wants_input && connection->held_back) || connection->unserved;
  turn_again_ = turn_again_ || again;
  return again;
}

// Of the engine: a job falls due, a lease ends.
std::optional<BootMicros> Server::Loop::NextEvent(const Now& now) const {
  const std::optional<Micros> event = engine_->UntilNextEvent(now);
  if (!event) {
    return std::nullopt;
  }
  // What is due now was advanced over, or turn_again_ is set: nothing is woken for it.
  return now.exact_boot() + (event->count() == 0 ? Millis(1) : *event);
}

std::optional<BootMicros> Server::Loop::NextWake(const Now& now) const {
  std::optional<BootMicros> wake = NextEvent(now);
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
    earlier(stop_deadline_);  // behind it the commit under way is waited for, which wakes us
  }
  return wake;
}

bool Server::Loop::under_pressure() const {
  return engine_->uncommitted_bytes() > options_.uncommitted_bytes_max;
}

bool Server::Loop::waits_for_room(const Session& session) const {
  return under_pressure() && session.waits_for_room();
}

// Everything is answered, read by its client or given up on, and durable.
bool Server::Loop::stop_complete(const Now& now) const {
  if (in_flight_) {
    return false;
  }
  return now.boot >= stop_deadline_ ||
         (given_back_.empty() && connections_.empty() && engine_->uncommitted_bytes() == 0);
}

Status Server::Loop::FailAll(Status cause) {
  log::Error("storage failed; the daemon ends and does not go on in memory",
             {{"code", cause.reason()}, {"detail", cause.message()}});
  boost::unordered_flat_map<engine::RequestId, Pending> pending;
  pending.swap(pending_);
  for (const auto& [id, request] : pending) {
    engine::Reply reply;
    reply.request = id;
    reply.status =
        request.changes
            ? Unknown(
                  "the daemon's storage failed while it wrote this change; it may have "
                  "happened, once: look the job up when the daemon is back",
                  "outcome_unknown")
            : Unavailable("the daemon's storage failed; ask again when the daemon is back");
    request.connection->pending.clear();
    request.connection->session().Answer(request.tag, reply);
    Touch(request.connection);
  }
  for (const ConnectionPtr& connection : touched_) {
    connection->Write();
    connection->Close();
  }
  return cause;
}

}  // namespace delayd
