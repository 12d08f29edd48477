// The way of requests from the clients to the engine: who is served when, and for how long.
#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/server_loop.h"

namespace delayd {

namespace {

// Requests of one connection per turn; the other connections are served before it goes on.
constexpr int kRequestsPerTurn = 256;
// While fewer than this many requests have been taken, answers are delivered at once if the next
// request is held up behind them. More would save turns, but fill the commits that other clients
// wait for (docs/decisions/0080).
constexpr int kAnswersPerTurn = 8;
// For all connections together: if a thousand clients each ask for large jobs, their answers are
// counted and sent only at the end of the turn. A shorter time would make clients that send one
// request at a time wait for another turn.
constexpr std::chrono::milliseconds kServePerTurn{250};
// For one connection: a client can easily send 256 requests that take milliseconds each, and all
// other clients would wait for them.
constexpr std::chrono::milliseconds kServeOnePerTurn{10};
// A client with more requests under way counts as pipelining (docs/decisions/0047).
constexpr size_t kOutstandingMax = 2;  // an ack, and the next lease

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
         std::holds_alternative<engine::LeaseJob>(command) ||  // revives a dead job
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

// Clients that ask while others are being served share their batch. Each connection is read once a
// turn.
void Server::Loop::ServeTouched(Now* now) {
  const auto end = std::chrono::steady_clock::now() + kServePerTurn;
  for (size_t served = 0; served < touched_.size();) {
    for (; served < touched_.size(); ++served) {
      if (std::chrono::steady_clock::now() > end) {
        ServeFirstNextTurn(served, *now);
        return;
      }
      Serve(ConnectionPtr(touched_[served]), end, now);  // a copy: answers may touch others
      DeliverReplies();  // within kServePerTurn: rendering a large answer takes some time
    }
    if (!in_flight_ && !pipelined_ && served < connections_.size()) {
      ReadUntil(end);
      *now = clock_->Sample();
    }
  }
}

// The connections from `begin` on were not served in this turn; they come first in the next.
void Server::Loop::ServeFirstNextTurn(size_t begin, const Now& now) {
  std::rotate(
      touched_.begin(), touched_.begin() + static_cast<std::ptrdiff_t>(begin), touched_.end());
  const size_t waiting = touched_.size() - begin;
  std::for_each_n(touched_.begin(), waiting, [this, &now](const ConnectionPtr& connection) {
    connection->unserved = true;
    // Before Advance hands a job to nobody.
    if (connection->gone()) {
      Leave(connection.get(), now);
      return;
    }
    LookForHangup(connection.get());
    if (connection->hung_up()) {
      GiveUpUntold(connection.get(), now);
    }
  });
}

// Gives the client's requests to the engine, as far as there is room and time.
void Server::Loop::Serve(const ConnectionPtr& connection,
                         std::chrono::steady_clock::time_point until,
                         Now* now) {
  if (connection->gone()) {
    Leave(connection.get(), *now);  // before Advance hands a job to nobody
    return;
  }
  connection->unserved = false;
  int taken = 0;
  auto begin = std::chrono::steady_clock::now();
  until = std::min(until, begin + kServeOnePerTurn);
  for (; taken < kRequestsPerTurn && begin <= until; ++taken) {
    std::optional<SessionRequest> request =
        TakeRequest(connection.get(), taken < kAnswersPerTurn, *now);
    if (!request) {
      break;
    }
    if (request->admin) {
      StartAdmin(connection, request->tag, *std::move(request->admin));
      continue;
    }
    const std::string_view name = engine::CommandName(request->command);
    Execute(connection, request->tag, std::move(request->command), now);
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
  const Session& session = connection->session();
  connection->held_back = taken == kRequestsPerTurn || begin > until || waits_for_room(session) ||
                          !session.wants_input() || session.has_more();
  EndInput(connection.get(), *now);
}

// None: more input, a commit or an answer must come first. An answer that is ready may be delivered
// at once (`may_deliver`).
std::optional<SessionRequest> Server::Loop::TakeRequest(Connection* connection,
                                                        bool may_deliver,
                                                        const Now& now) {
  std::optional<SessionRequest> request = connection->NextRequest(now, under_pressure());
  if (!request && may_deliver && connection->session().held_up()) {
    DeliverReplies();
    request = connection->NextRequest(now, under_pressure());
  }
  return request;
}

void Server::Loop::Execute(const ConnectionPtr& connection,
                           uint64_t tag,
                           engine::Command&& command,
                           Now* now) {
  const engine::RequestId id = next_request_++;
  const bool is_lease = HandsOut(command);
  connection->leases += is_lease ? 1U : 0U;
  pending_.emplace(id,
                   Pending{.connection = connection,
                           .tag = tag,
                           .is_lease = is_lease,
                           .names_job = std::holds_alternative<engine::LeaseJob>(command),
                           .changes = ChangesJobs(command)});
  connection->pending.push_back(id);
  if (options_.trusted_clock != nullptr && std::holds_alternative<engine::AcceptClock>(command)) {
    options_.trusted_clock->Accept();
    *now = clock_->Sample();
  }
  engine_->Execute(id, std::move(command), *now);
}

// Handles a client that sends nothing more or has gone.
void Server::Loop::EndInput(Connection* connection, const Now& now) {
  Session& session = connection->session();
  LookForHangup(connection);
  const bool is_all_taken = connection->input_ended() && !connection->held_back;
  // If input is left in the socket, its end is not seen, but a client that has gone must not be
  // given the jobs that it waits for.
  const bool awaits_in_vain =
      connection->hung_up() && !session.wants_input() && connection->leases != 0;
  if (is_all_taken || awaits_in_vain) {
    session.InputEnded();
  }
  if (connection->hung_up()) {
    GiveUpUntold(connection, now);  // before Advance hands a job to nobody
  }
}

}  // namespace delayd
