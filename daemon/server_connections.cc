// The server's dealings with clients as such: who comes, who is too slow, who goes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/errno_text.h"
#include "base/limits.h"
#include "daemon/log.h"
#include "daemon/server_loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace delayd {

namespace {

// With a large key one takes milliseconds, and a rush of clients seconds.
constexpr std::chrono::milliseconds kGreetPerTurn{20};
constexpr int kReturnsPerTurn = 1000;
// About what one has beside what Session::held_bytes counts: more with TLS or leases that wait,
// less without.
constexpr size_t kConnectionBytes = size_t{16} * 1024;

}  // namespace

void Server::Loop::Listen(Listener listener, SessionFactory factory, std::string no_room) {
  const int copy = ::fcntl(listener.fd(), F_DUPFD_CLOEXEC, 0);
  DELAYD_CHECK(copy >= 0);
  doors_.push_back(
      std::make_unique<Door>(Door{.listener = std::move(listener),
                                  .factory = std::move(factory),
                                  .no_room = std::move(no_room),
                                  .waiter = boost::asio::posix::stream_descriptor(io_, copy),
                                  .pause = boost::asio::steady_timer(io_)}));
  WaitForClients(doors_.back().get());
}

void Server::Loop::WaitForClients(Door* door) {
  door->waiter.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [this, door](const boost::system::error_code& error) {
                            if (!error) {
                              AcceptFrom(door);
                            }
                          });
}

void Server::Loop::AcceptFrom(Door* door) {
  constexpr int kPerTurn = 64;
  for (int i = 0; i < kPerTurn; ++i) {
    UniqueFd client(::accept4(door->listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.valid()) {
      if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        RestFrom(door, errno);
        return;
      }
      break;
    }
    ++figures_.accepted;
    // Some are kept for this machine: a network must not be able to lock its operator out.
    const size_t kept = door->listener.is_tcp() ? options_.connections_max / 8 : 0;
    if (connections_.size() + kept >= options_.connections_max) {
      NoteRefused(*door);
      // One try: so little fits any socket's buffer.
      [[maybe_unused]] const ssize_t sent = ::send(
          client.get(), door->no_room.data(), door->no_room.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      continue;
    }
    if (door->listener.is_tcp()) {
      const int on = 1;
      ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      // A worker may wait for hours: only the kernel notices that its machine is gone.
      ::setsockopt(client.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    std::unique_ptr<Session> session = door->factory();
    session->SetPeer(ReadPeer(client.get()));
    Connection::Stream stream(io_);
    boost::system::error_code error;
    stream.assign(client.get(), error);  // NOLINT(bugprone-unused-return-value)
    if (error) {
      RestFrom(door, error.value());  // as many are watched as a user may, or there is no memory
      return;
    }
    static_cast<void>(client.Release());  // it is the stream's
    const auto connection = std::make_shared<Connection>(
        std::move(stream), std::move(session), &timeouts_, clock_->Sample().boot);
    connections_.emplace(connection.get(), connection);
    Touch(connection);
  }
  door->accepted = true;
}

// What is missing to accept a client may be there again soon.
void Server::Loop::RestFrom(Door* door, int error) {
  ++figures_.accept_failures;
  log::Warn("cannot accept a connection; trying again in a second",
            {{"listen", door->listener.label()}, {"cause", ErrnoText(error)}});
  door->pause.expires_after(std::chrono::seconds(1));
  door->pause.async_wait([this, door](const boost::system::error_code& cancelled) {
    if (!cancelled) {
      WaitForClients(door);
    }
  });
}

void Server::Loop::NoteRefused(const Door& door) {
  ++figures_.refused;
  if (!refusal_told_.IsDue(clock_->Sample().boot)) {
    return;  // clients that are refused try again, and each would be a line
  }
  log::Warn("connections are refused; close some, or raise limits.connections",
            {{"listen", door.listener.label()},
             {"connections", connections_.size()},
             {"connections_max", options_.connections_max},
             {"refused_so_far", figures_.refused}});
}

void Server::Loop::LogIncidents() {
  for (const Status& incident : engine_->TakeIncidents()) {
    log::Error("damaged record", {{"code", incident.reason()}, {"detail", incident.message()}});
  }
}

// A table that only a request reads is no incident of the engine's: else its client alone would
// know.
void Server::Loop::NoteDamage(const Status& answer) {
  if (answer.code() != StatusCode::kDataLoss || answer.reason() != "damaged_store") {
    return;
  }
  if (damage_told_.IsDue(clock_->Sample().boot)) {
    log::Error("a request met damage in the store", {{"detail", answer.message()}});
  }
}

// As sockets that were read are: clients that come faster than they are refused would keep a turn
// from ever beginning.
void Server::Loop::WaitForMoreClients() {
  for (const std::unique_ptr<Door>& door : doors_) {
    if (std::exchange(door->accepted, false)) {
      WaitForClients(door.get());
    }
  }
}

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

// Behind all others, whose sockets and commits would else wait in Asio's line until every
// handshake before them is done.
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

// A client that only closed its sending side: what waits is answered, with what there is.
void Server::Loop::EndWaits(const Connection& connection, const Now& now) {
  for (const engine::RequestId id : connection.pending) {
    if (pending_.at(id).is_lease) {
      engine_->Execute(next_request_++, engine::EndWait{id}, now);
      turn_again_ = true;  // to deliver the answer
    }
  }
}

bool Server::Loop::AwaitsLease(const Connection& connection) const {
  return std::ranges::any_of(connection.pending,
                             [this](engine::RequestId id) { return pending_.at(id).is_lease; });
}

// Its lease requests that still wait must not be given a job.
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
    pending_.erase(found);
  }
}

// It has gone, or has nothing more to say: what it holds is given back.
void Server::Loop::Leave(Connection* connection, const Now& now) {
  GiveUpLeases(connection, now);
  for (const LeaseToken& token : connection->session().Leave()) {
    given_back_.push_back(token);
    turn_again_ = true;  // to hand it to whoever waits
  }
}

// One connection may have held a hundred thousand jobs, and each that comes back is written: the
// answers of others would wait behind them all.
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
  // Else the commit that makes room wakes us.
  turn_again_ = turn_again_ || may_go_on();
}

void Server::Loop::Drop(const ConnectionPtr& connection, const Now& now) {
  Leave(connection.get(), now);
  // Their changes happen all the same; there is nobody to tell.
  for (const engine::RequestId id : connection->pending) {
    pending_.erase(id);
  }
  connection->pending.clear();
  NoteHeld(connection.get(), 0);
  freed_bytes_ += kConnectionBytes;
  connection->Close();
  connections_.erase(connection.get());
}

void Server::Loop::NoteHeld(Connection* connection, size_t bytes) {
  const size_t before = std::exchange(connection->held_bytes, bytes);
  held_bytes_ += bytes - before;
  freed_bytes_ += before - std::min(before, bytes);
}

// Each client is bounded, but many together could have all memory. Those that have little, as most
// do, never notice.
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
    if (phase != Session::Phase::kHead && phase != Session::Phase::kBody) {
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

// One entry a connection, pushed again only when its deadline came nearer: a busy connection costs
// nothing here.
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
    connection->NoteTime(now.boot);  // what it sent or took in this turn
    const std::optional<BootTime> deadline = connection->deadline();
    if (!deadline || *deadline > now.boot) {
      QueueDeadline(connection);
      continue;
    }
    if (connection->lingering()) {
      Drop(connection, now);  // it has all that it gets
      continue;
    }
    ++figures_.timed_out;
    Session& session = connection->session();
    const Session::Phase phase = session.phase();
    if (!session.finished() &&  // else it has been told, and does not read it
        (phase == Session::Phase::kHead || phase == Session::Phase::kBody)) {
      session.Refuse(DeadlineExceeded("the request did not arrive in time; send it at once",
                                      "request_timeout"));
      Touch(connection);
    } else {
      Drop(connection, now);
    }
  }
}

void Server::Loop::WaitForSignal() {
  boost::system::error_code error;
  signals_.add(SIGTERM, error);  // NOLINT(bugprone-unused-return-value)
  DELAYD_CHECK(!error);
  signals_.add(SIGINT, error);  // NOLINT(bugprone-unused-return-value)
  DELAYD_CHECK(!error);
  signals_.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (!cancelled) {
      Stop();
      EndAtNextSignal();
    }
  });
}

// Without this thread: it may wait for a disk, or be done while something beside it is not, and
// then the store is closed.
void Server::Loop::EndAtNextSignal() {
  // Nothing acknowledged can be lost by this; the next start reads what is durable. One may have
  // come already, while this thread waited for the disk.
  signals_.async_wait([](const boost::system::error_code& none, int) {
    if (!none) {
      ::_exit(EXIT_FAILURE);
    }
  });
  boost::system::error_code error;
  signals_.clear(error);   // NOLINT(bugprone-unused-return-value)
  signals_.cancel(error);  // NOLINT(bugprone-unused-return-value)
  for (const int signal : {SIGTERM, SIGINT}) {
    std::signal(signal, [](int) { ::_exit(EXIT_FAILURE); });
  }
}

void Server::Loop::WaitForDrainSignal() {
  boost::system::error_code error;
  drain_signal_.add(SIGUSR1, error);  // NOLINT(bugprone-unused-return-value)
  DELAYD_CHECK(!error);
  drain_signal_.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (cancelled) {
      return;
    }
    engine_->Execute(next_request_++, engine::Drain{.on = true}, clock_->Sample());
    WaitForDrainSignal();
  });
}

// Whoever asked for it, by signal or over the API.
void Server::Loop::LogDrain() {
  if (engine_->draining() == drain_logged_) {
    return;
  }
  drain_logged_ = engine_->draining();
  log::Info(drain_logged_ ? "draining: no new jobs are taken; what is there is worked off"
                          : "the drain has ended; new jobs are taken again");
  if (options_.drain_changed) {
    options_.drain_changed();
  }
}

void Server::Loop::WaitForHangup() {
  hangups_.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (cancelled) {
      return;
    }
    reload_wanted_ = options_.reload != nullptr;
    WaitForHangup();
  });
}

void Server::Loop::BeginStop(const Now& now) {
  stopping_ = true;
  stop_deadline_ = now.boot + options_.stop_grace;
  log::Info("stopping: answering what is under way", {{"connections", connections_.size()}});
  if (options_.stopping) {
    options_.stopping();
  }
  doors_.clear();
  stop_admin_.store(true);
  for (const auto& [key, connection] : connections_) {
    connection->session().Stop();  // first: the last answer says that none follows
    GiveUpLeases(connection.get(), now);
    Touch(connection);
  }
}

}  // namespace delayd
