// The life of a connection: handshake, timeouts, too much memory, its end, and the leases that are
// given back then.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "daemon/log.h"
#include "daemon/server_loop.h"

namespace delayd {

namespace {

// A handshake with a large key takes milliseconds, and a rush of clients seconds.
constexpr std::chrono::milliseconds kGreetPerTurn{20};
constexpr int kReturnsPerTurn = 1000;
// The approximate memory of a connection besides Session::held_bytes: more with TLS or waiting
// leases, less without.
constexpr size_t kConnectionBytes = size_t{16} * 1024;

}  // namespace

void Server::Loop::Touch(const ConnectionPtr& connection) {
  if (!connection->touched) {
    connection->touched = true;
    touched_.push_back(connection);
  }
}

void Server::Loop::Read(const ConnectionPtr& connection) {
  connection->Read(read_buffer_);
  connection->unserved = true;
  Touch(connection);
}

// Runs after everything else; otherwise sockets and commits would wait in Asio's queue behind every
// handshake.
void Server::Loop::Greet() {
  const auto end = std::chrono::steady_clock::now() + kGreetPerTurn;
  while (!greeting_.empty()) {
    const ConnectionPtr connection = std::move(greeting_.front());
    greeting_.pop_front();
    if (!connection->gone()) {
      Read(connection);
    }
    if (std::chrono::steady_clock::now() > end) {
      return;
    }
  }
}

// For a client that closed only its sending side: its waiting leases get the jobs that are ready.
void Server::Loop::EndWaits(const Connection& connection, const Now& now) {
  for (const engine::RequestId id : connection.pending) {
    if (pending_.at(id).is_lease) {
      engine_->Execute(next_request_++, engine::EndWait{id}, now);
      turn_again_ = true;  // to deliver the answer
    }
  }
}

// A connection is read once a turn: of a client that closed right behind a request for jobs, the
// end has not been read yet, and it must not be given any.
void Server::Loop::LookForHangup(Connection* connection) {
  if (connection->leases != 0 && !connection->hung_up()) {
    connection->NoteHangup();
  }
}

// The connection's lease requests that still wait must not be given a job.
void Server::Loop::GiveUpLeases(Connection* connection, const Now& now) {
  const std::vector<engine::RequestId> requests = connection->pending;
  for (const engine::RequestId id : requests) {
    const auto found = pending_.find(id);
    DELAYD_CHECK(found != pending_.end());
    if (!found->second.is_lease) {
      continue;
    }
    engine_->Execute(next_request_++, engine::Abandon{id}, now);
    turn_again_ = true;  // as in Leave
    engine::Reply none;
    none.request = id;
    if (found->second.names_job) {
      none.status = Unavailable("the daemon is being stopped; ask again when it is back");
    } else {
      none.body = engine::Leased{};
    }
    connection->session().Answer(found->second.tag, none);
    std::erase(connection->pending, id);
    --connection->leases;
    pending_.erase(found);
  }
}

// Lease requests that wait for up to an hour must not be given a job after a reload that took their
// token away: its ack would be refused.
void Server::Loop::RefuseForbidden(const Now& now) {
  for (const auto& [key, connection] : connections_) {
    if (connection->leases == 0) {
      continue;
    }
    for (const uint64_t tag : connection->session().RefuseForbidden()) {
      const auto at = std::ranges::find(
          connection->pending, tag, [this](engine::RequestId id) { return pending_.at(id).tag; });
      DELAYD_CHECK(at != connection->pending.end());
      engine_->Execute(next_request_++, engine::Abandon{*at}, now);
      pending_.erase(*at);
      connection->pending.erase(at);
      --connection->leases;
      Touch(connection);
    }
  }
}

void Server::Loop::QueueGiveBack(const std::vector<LeaseToken>& tokens) {
  given_back_.insert(given_back_.end(), tokens.begin(), tokens.end());
  turn_again_ = turn_again_ || !tokens.empty();  // to lease the jobs to clients that wait
}

// Nobody reads the client's answers: it must not be given a job, and those in answers that have not
// gone out are given back. They come first, as an empty answer lets those behind it go.
void Server::Loop::GiveUpUntold(Connection* connection, const Now& now) {
  QueueGiveBack(connection->session().TakeUntold());
  GiveUpLeases(connection, now);
}

// The client has gone, or is finished: its leases are given back.
void Server::Loop::Leave(Connection* connection, const Now& now) {
  GiveUpUntold(connection, now);
  QueueGiveBack(connection->session().Leave());
}

// One connection may have held a hundred thousand jobs. Each one that is given back is a change to
// commit, and the answers to other clients would wait behind them all.
void Server::Loop::GiveBackSome(const Now& now) {
  const auto may_go_on = [this] {
    return !given_back_.empty() && !under_pressure() && !engine_->has_own_work_enough();
  };
  const auto end = std::chrono::steady_clock::now() + Millis(limits::kOwnWorkMs);
  const auto has_time = [end] { return std::chrono::steady_clock::now() < end; };
  for (int count = 0; count < kReturnsPerTurn && may_go_on() && has_time(); ++count) {
    engine_->Execute(next_request_++, engine::GiveBack{given_back_.front()}, now);
    given_back_.pop_front();
  }
  // Otherwise the commit that makes room wakes us.
  turn_again_ = turn_again_ || may_go_on();
}

void Server::Loop::Drop(const ConnectionPtr& connection, const Now& now) {
  if (connections_.erase(connection.get()) == 0) {
    return;  // dropped earlier in this turn: by its deadline, or to make room
  }
  Leave(connection.get(), now);
  // The changes of its requests happen all the same, but nobody waits for the answers.
  for (const engine::RequestId id : connection->pending) {
    pending_.erase(id);
  }
  connection->pending.clear();
  NoteHeld(connection.get(), 0);
  freed_bytes_ += kConnectionBytes;
  connection->Close();
}

void Server::Loop::NoteHeld(Connection* connection, size_t bytes) {
  const size_t before = std::exchange(connection->held_bytes, bytes);
  held_bytes_ += bytes - before;
  freed_bytes_ += before - std::min(before, bytes);
}

// Each client is bounded, but many together could use up all memory. Clients that hold little, as
// most do, are never affected.
void Server::Loop::MakeRoom(const Now& now) {
  while (held_bytes_ > options_.held_bytes_max) {
    const ConnectionPtr most = std::ranges::max_element(connections_, {}, [](const auto& entry) {
                                 return entry.second->held_bytes;
                               })->second;
    ++figures_.crowded_out;
    log::Warn("the clients' requests and answers take too much memory; the largest is let go of",
              {{"bytes", held_bytes_}, {"of_the_largest", most->held_bytes}});
    Session& session = most->session();
    const Session::Phase phase = session.phase();
    if (phase != Session::Phase::kHead && phase != Session::Phase::kBody &&
        !session.has_untaken()) {
      Drop(most, now);
      continue;
    }
    session.Refuse(Unavailable(
        "all clients together send more at once than the daemon has room for; send the request "
        "again, or less at once",
        "too_much_at_once"));
    NoteHeld(most.get(), 0);
    Touch(most);
    turn_again_ = true;
  }
}

// A connection is queued again only if its deadline has moved nearer, so a busy one costs nothing
// here.
void Server::Loop::QueueDeadline(const ConnectionPtr& connection) {
  const std::optional<BootTime> deadline = connection->deadline();
  if (deadline && (!connection->queued_deadline || *deadline < *connection->queued_deadline)) {
    connection->queued_deadline = deadline;
    deadlines_.emplace(*deadline, connection);
  }
}

void Server::Loop::CheckDeadlines(const Now& now) {
  while (!deadlines_.empty() && deadlines_.top().first <= now.boot) {
    const auto [time, weak] = deadlines_.top();
    deadlines_.pop();
    const ConnectionPtr connection = weak.lock();
    if (connection == nullptr || connection->gone() || connection->queued_deadline != time) {
      continue;
    }
    connection->queued_deadline.reset();
    connection->NoteTime(now.boot);  // include what happened in this turn
    const std::optional<BootTime> deadline = connection->deadline();
    if (!deadline || *deadline > now.boot) {
      QueueDeadline(connection);
      continue;
    }
    if (connection->lingering()) {
      Drop(connection, now);  // its last answer has been sent
      continue;
    }
    ++figures_.timed_out;
    Session& session = connection->session();
    const Session::Phase phase = session.phase();
    if (!session.finished() &&  // a finished one has got its answer, but does not read it
        (phase == Session::Phase::kHead || phase == Session::Phase::kBody)) {
      session.Refuse(DeadlineExceeded("the request did not arrive in time; send it at once",
                                      "request_timeout"));
      Touch(connection);
    } else {
      Drop(connection, now);
    }
  }
}

}  // namespace delayd
