#include "daemon/server.h"

#include <algorithm>

#include "daemon/log.h"
#include "daemon/server_loop.h"

#include <boost/asio/post.hpp>

namespace delayd {

namespace {

constexpr size_t kReadBytes = size_t{64} * 1024;
// Requests of one connection in one turn; the others have theirs before it goes on.
constexpr int kRequestsPerTurn = 256;

bool ChangesJobs(const engine::Command& command) {
  return std::holds_alternative<engine::Enqueue>(command) ||
         std::holds_alternative<engine::Cancel>(command) ||
         std::holds_alternative<engine::Reschedule>(command) ||
         std::holds_alternative<engine::Ack>(command) ||
         std::holds_alternative<engine::Nack>(command) ||
         std::holds_alternative<engine::Bury>(command) ||
         std::holds_alternative<engine::Kick>(command) ||
         std::holds_alternative<engine::KickQueue>(command) ||
         std::holds_alternative<engine::Pause>(command) ||
         std::holds_alternative<engine::Resume>(command) ||
         std::holds_alternative<engine::ChangeMany>(command);
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

Server::Loop::Loop(const ServerOptions& options,
                   engine::Engine* engine,
                   storage::JobStore* store,
                   const Clock* clock)
    : options_(options),
      timeouts_({.idle = options.idle_timeout, .head = options.head_timeout}),
      engine_(engine),
      clock_(clock),
      signals_(io_),
      drain_signal_(io_),
      wake_(&io_, [] { log::Info("the wall clock was set; absolute due times follow it"); }),
      on_readable_([this](const ConnectionPtr& connection) {
        connection->Read(read_buffer_);
        Touch(connection);
      }),
      on_writable_([this](const ConnectionPtr& connection) { Touch(connection); }),
      read_buffer_(kReadBytes),
      committer_(
          store,
          [this](uint64_t sequence, Status status) {
            boost::asio::post(io_, [this, sequence, status = std::move(status)]() mutable {
              commit_result_ = CommitResult{sequence, std::move(status)};
            });
          },
          DiskReserve(options.disk),
          [this](Status refusal) {
            boost::asio::post(io_, [this, refusal = std::move(refusal)] { DiskChanged(refusal); });
          }),
      admin_worker_(options.admin, [this](AdminAnswer answer) {
        boost::asio::post(io_, [this, answer = std::move(answer)] { FinishAdmin(answer); });
      }) {}

Status Server::Loop::Run() {
  WaitForSignal();
  WaitForDrainSignal();
  heartbeat_due_ = clock_->Sample().boot;
  // What loading left to do comes first, then whatever wakes us.
  Status status = Turn();
  while (status.ok() && !(stopping_ && stop_complete(clock_->Sample()))) {
    Wait();
    status = Turn();
  }
  return status;
}

void Server::Loop::Stop() {
  stop_wanted_ = true;
}

void Server::Loop::Wait() {
  if (!turn_again_) {
    io_.run_one();
  }
  // Ends: a socket that was read is waited for again only at the end of the turn.
  io_.poll();
}

Status Server::Loop::Turn() {
  turn_again_ = false;
  if (commit_result_) {
    const CommitResult result = *std::exchange(commit_result_, std::nullopt);
    in_flight_ = false;
    if (!result.status.ok()) {
      return FailAll(result.status);
    }
    engine_->Committed(result.sequence);
    DeliverReplies();  // before a client that has gone is asked what it holds
  }
  // After the reads: a delay must not count from a moment before its request had arrived.
  const Now now = clock_->Sample();
  for (size_t i = 0; i < touched_.size(); ++i) {
    Serve(touched_[i], now);
  }
  CheckDeadlines(now);
  if (stop_wanted_ && !stopping_) {
    BeginStop(now);
  }
  turn_again_ = engine_->Advance(now) || turn_again_;
  if (!engine_->fatal().ok()) {
    return FailAll(engine_->fatal());
  }
  Submit(now);
  DeliverReplies();
  FinishTouched(now);
  LogIncidents();
  if (options_.heartbeat_interval && now.boot >= heartbeat_due_) {
    options_.heartbeat();
    heartbeat_due_ = now.boot + *options_.heartbeat_interval;
  }
  wake_.SetDeadline(NextWake(now));
  return OkStatus();
}

// Gives the engine what the client has asked, as far as there is room.
void Server::Loop::Serve(const ConnectionPtr& connection, const Now& now) {
  if (connection->gone()) {
    Leave(connection.get(), now);  // before Advance hands a job to nobody
    return;
  }
  int taken = 0;
  for (; taken < kRequestsPerTurn && !under_pressure(); ++taken) {
    std::optional<SessionRequest> request = connection->NextRequest(now);
    if (!request) {
      break;
    }
    if (request->admin) {
      StartAdmin(connection, request->tag, *std::move(request->admin));
      continue;
    }
    const engine::RequestId id = next_request_++;
    pending_.emplace(id,
                     Pending{.connection = connection,
                             .tag = request->tag,
                             .is_lease = HandsOut(request->command),
                             .changes = ChangesJobs(request->command)});
    connection->pending.push_back(id);
    engine_->Execute(id, std::move(request->command), now);
  }
  Session& session = connection->session();
  connection->held_back =
      taken == kRequestsPerTurn || under_pressure() || !session.wants_input() || session.has_more();
  if (connection->input_ended() && !connection->held_back) {
    session.InputEnded();
    if (connection->hung_up()) {
      GiveUpLeases(connection.get(), now);  // before Advance hands a job to nobody
    }
  }
}

void Server::Loop::DiskChanged(const Status& refusal) {
  engine_->RefuseEnqueues(refusal);
  if (refusal.ok()) {
    log::Info("there is room on the disk again; new jobs are taken");
  } else {
    log::Error("the disk is nearly full; new jobs are refused",
               {{"code", refusal.reason()}, {"detail", refusal.message()}});
  }
}

void Server::Loop::StartAdmin(const ConnectionPtr& connection, uint64_t tag, AdminCommand command) {
  if (!options_.admin || stopping_) {
    connection->session().AnswerAdmin(
        tag, Unavailable("this daemon takes no admin commands now; try again when it is back"));
  } else if (admin_client_) {
    connection->session().AnswerAdmin(
        tag,
        FailedPrecondition("another verify or backup is under way; try again when it has ended",
                           "admin_busy"));
  } else {
    admin_client_ = AdminClient{.connection = connection, .tag = tag};
    admin_worker_.Start(std::move(command));
  }
}

void Server::Loop::FinishAdmin(const AdminAnswer& answer) {
  DELAYD_CHECK(admin_client_.has_value());
  const AdminClient client = *std::exchange(admin_client_, std::nullopt);
  const ConnectionPtr connection = client.connection.lock();
  if (connection != nullptr && !connection->gone()) {
    connection->session().AnswerAdmin(client.tag, answer);
    Touch(connection);
  }
}

void Server::Loop::Submit(const Now& now) {
  if (in_flight_) {
    return;
  }
  if (std::optional<engine::SealedBatch> batch = engine_->Seal(now)) {
    in_flight_ = true;
    committer_.Submit(*std::move(batch));
  }
}

void Server::Loop::DeliverReplies() {
  for (const engine::Reply& reply : engine_->TakeReplies()) {
    DeliverReply(reply);
  }
}

void Server::Loop::DeliverReply(const engine::Reply& reply) {
  const auto found = pending_.find(reply.request);
  if (found == pending_.end()) {
    return;  // its client has gone
  }
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  std::erase(pending.connection->pending, reply.request);
  pending.connection->session().Answer(pending.tag, reply);
  Touch(pending.connection);
}

void Server::Loop::FinishTouched(const Now& now) {
  // A copy: whoever is still held back is looked at again in the next turn.
  std::vector<ConnectionPtr> touched;
  touched.swap(touched_);
  for (const ConnectionPtr& connection : touched) {
    connection->touched = false;
    if (FinishOne(connection, now)) {
      Touch(connection);
    }
  }
}

// Sends, waits for more, or lets go. True: look at it again in the next turn.
bool Server::Loop::FinishOne(const ConnectionPtr& connection, const Now& now) {
  if (connection->input_ended() && !connection->held_back) {
    // It gets what is there now; a client that asks nothing more does not wait for later jobs.
    EndWaits(*connection, now);
  }
  const bool all_sent = connection->Write();
  Session& session = connection->session();
  const bool done = session.finished() && all_sent;
  if (connection->gone() || (done && (connection->input_ended() || stopping_))) {
    Drop(connection, now);
    return false;
  }
  if (done) {
    Leave(connection.get(), now);
    connection->BeginLinger();
  }
  if (!all_sent) {
    connection->ArmWrite(on_writable_);
  }
  connection->NoteTime(now.boot);
  QueueDeadline(connection);
  if (under_pressure()) {
    return true;  // the commit that makes room wakes us
  }
  const bool wants_input = session.wants_input();
  if (wants_input) {
    connection->ArmRead(on_readable_);
  }
  // There may be whole requests in the session's buffer, and no byte may follow to wake us. Where
  // there is no room, an answer or the client's reading makes it, and touches the connection.
  const bool again = session.has_more() || (wants_input && connection->held_back);
  turn_again_ = turn_again_ || again;
  return again;
}

void Server::Loop::LogIncidents() {
  for (const Status& incident : engine_->TakeIncidents()) {
    log::Error("damaged record", {{"code", incident.reason()}, {"detail", incident.message()}});
  }
}

std::optional<BootTime> Server::Loop::NextWake(const Now& now) const {
  std::optional<BootTime> wake;
  const auto earlier = [&wake](BootTime time) { wake = wake ? std::min(*wake, time) : time; };
  if (const std::optional<Millis> event = engine_->UntilNextEvent(now)) {
    // At least a tick ahead: what is due now was advanced over, or turn_again_ is set.
    earlier(now.boot + std::max(*event, Millis(1)));
  }
  if (!deadlines_.empty()) {
    earlier(deadlines_.top().first);
  }
  if (options_.heartbeat_interval) {
    earlier(heartbeat_due_);
  }
  if (stopping_) {
    earlier(stop_deadline_);
  }
  return wake;
}

bool Server::Loop::under_pressure() const {
  return engine_->uncommitted_bytes() > options_.uncommitted_bytes_max;
}

// Everything is answered, read by its client or given up on, and durable.
bool Server::Loop::stop_complete(const Now& now) const {
  if (in_flight_) {
    return false;
  }
  return now.boot >= stop_deadline_ || (connections_.empty() && engine_->uncommitted_bytes() == 0);
}

Status Server::Loop::FailAll(Status cause) {
  log::Error("storage failed; the daemon ends and does not go on in memory",
             {{"code", cause.reason()}, {"detail", cause.message()}});
  std::unordered_map<engine::RequestId, Pending> pending;
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
