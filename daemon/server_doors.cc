// Accepts clients, and turns them away when there are too many.
#include <fcntl.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/errno_text.h"
#include "daemon/log.h"
#include "daemon/server_loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace delayd {

void Server::Loop::Listen(Listener listener, SessionFactory factory, std::string no_room) {
  const int copy = ::fcntl(listener.fd(), F_DUPFD_CLOEXEC, 0);
  DELAYD_CHECK(copy >= 0);
  doors_.push_back(
      std::make_unique<Door>(Door{.listener = std::move(listener),
                                  .factory = std::move(factory),
                                  .no_room = std::move(no_room),
                                  .waiter = boost::asio::posix::stream_descriptor(io_, copy)}));
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
    // An eighth is reserved for Unix sockets, so that clients on the network cannot lock out the
    // operator.
    const size_t kept = door->listener.is_tcp() ? options_.connections_max / 8 : 0;
    if (connections_.size() + kept >= options_.connections_max) {
      NoteRefused(*door);
      // One try is enough: so few bytes fit into any socket buffer.
      [[maybe_unused]] const ssize_t sent = ::send(
          client.get(), door->no_room.data(), door->no_room.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      continue;
    }
    if (door->listener.is_tcp()) {
      const int on = 1;
      ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      // A worker may wait for hours, and only the kernel notices that its machine is gone.
      ::setsockopt(client.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    std::unique_ptr<Session> session = door->factory();
    session->SetPeer(ReadPeer(client.get()));
    Connection::Stream stream(io_);
    boost::system::error_code error;
    stream.assign(client.get(), error);  // NOLINT(bugprone-unused-return-value)
    if (error) {
      RestFrom(door, error.value());  // the user's limit of watched descriptors, or no memory
      return;
    }
    static_cast<void>(client.Release());  // the stream owns it now
    const auto connection = std::make_shared<Connection>(
        std::move(stream), std::move(session), &timeouts_, clock_->Sample().boot);
    connections_.emplace(connection.get(), connection);
    Touch(connection);
  }
  door->rests_until = BootTime();  // until the end of this turn
}

// Whatever is missing to accept a client may be available again soon.
void Server::Loop::RestFrom(Door* door, int error) {
  ++figures_.accept_failures;
  log::Warn("cannot accept a connection; trying again in a second",
            {{"listen", door->listener.label()}, {"cause", ErrnoText(error)}});
  door->rests_until = clock_->Sample().boot + std::chrono::seconds(1);
}

void Server::Loop::NoteRefused(const Door& door) {
  ++figures_.refused;
  if (!refusal_told_.IsDue(clock_->Sample().boot)) {
    return;  // refused clients try again, and each attempt would log a line
  }
  log::Warn("connections are refused; close some, or raise limits.connections",
            {{"listen", door.listener.label()},
             {"connections", connections_.size()},
             {"connections_max", options_.connections_max},
             {"refused_so_far", figures_.refused}});
}

// Done at the end of a turn, as for sockets that were read. Otherwise clients that connect faster
// than they are refused could keep a turn from ever beginning.
void Server::Loop::WaitForMoreClients(const Now& now) {
  for (const std::unique_ptr<Door>& door : doors_) {
    if (door->rests_until && now.boot >= *door->rests_until) {
      door->rests_until.reset();
      WaitForClients(door.get());
    }
  }
}

}  // namespace delayd
