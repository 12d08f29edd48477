#include "protocol/connection.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/clock.h"
#include "base/errno_text.h"
#include "protocol/poll_until.h"
#include "protocol/tcp_dial.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace delayd::protocol {
namespace {

constexpr size_t kRecordBytes = size_t{16} * 1024;
// Nothing signals that a Unix socket's backlog has room again.
constexpr int kConnectAgainMs = 10;

Status TimedOut() {
  return DeadlineExceeded("timed out", "timed_out");
}

// The group that a user must join to use the socket; empty where the file system does not tell.
std::string SocketGroup(const std::string& path) {
  struct stat info {};

  if (stat(path.c_str(), &info) != 0) {
    return {};
  }

  struct group entry {};
  struct group* found = nullptr;
  char buffer[4096];
  if (getgrgid_r(info.st_gid, &entry, buffer, sizeof buffer, &found) != 0 || found == nullptr) {
    return {};
  }
  // Never suggest root's group: its members may read more than jobs.
  return info.st_gid == 0 ? std::string() : found->gr_name;
}

std::string CannotReach(const ServerAddress& address) {
  return "cannot reach " + address.server + " at " + address.text + ": ";
}

Status Unreachable(const ServerAddress& address, int error) {
  const std::string who = CannotReach(address);
  if (error == EACCES || error == EPERM) {
    if (address.path.empty()) {
      return PermissionDenied(who +
                              "a rule of this machine forbids it; look at its firewall, and "
                              "at IPAddressDeny= of a service");
    }
    const std::string group = SocketGroup(address.path);
    const std::string cure =
        group.empty() ? "run this as a user who may use the socket and its directory, or with sudo"
                      : "add yourself to its group (sudo usermod -aG " + group +
                            " $USER, then log in again), or use sudo";
    return PermissionDenied(who + "permission denied; " + cure);
  }
  std::string cause = ErrnoText(error);
  if (!address.path.empty() && error == ENOENT) {
    cause = "there is no such socket";
  } else if (error == ECONNREFUSED) {
    cause = "nothing listens there";
  }
  const std::string cure =
      error == EMFILE ? "raise the limit of open files (ulimit -n, or LimitNOFILE= of a service)"
      : address.server == ServerAddress().server
          ? std::string("start delayd (systemctl start delayd") +
                (error == ENOENT ? "; restart it where it runs and its socket was removed" : "") +
                "), or give its address with --server or DELAYCTL_SERVER"
          : "is it running there?";
  return Unavailable(who + cause + "; " + cure, "unreachable");
}

}  // namespace

void Connection::Close() {
  tls_.reset();
  plain_.clear();
  heard_ = false;
  if (fd_ >= 0) {
    close(fd_);
    fd_ = -1;
  }
}

bool Connection::Idle() const {
  pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
  return plain_.empty() && poll(&entry, 1, 0) == 0;
}

Status Connection::Wait(short events, BootTime deadline) const {
  std::array<pollfd, 2> entries{{{fd_, events, 0}, {give_up_fd_, POLLIN, 0}}};
  int ready = PollUntil(entries, deadline);
  if (ready > 0 && entries[0].revents == 0) {
    const BootTime grace_end = SystemClock().Sample().boot + grace_;
    ready = PollUntil(std::span(entries).first(1), std::min(deadline, grace_end));
  }
  if (ready < 0) {
    return Internal("poll: " + ErrnoText(errno));
  }
  return entries[0].revents != 0 ? OkStatus() : TimedOut();
}

Status Connection::Nap(BootTime deadline) const {
  pollfd entry{.fd = give_up_fd_, .events = POLLIN, .revents = 0};
  const bool given_up = poll(&entry, 1, kConnectAgainMs) > 0;
  return given_up || SystemClock().Sample().boot >= deadline ? TimedOut() : OkStatus();
}

Status Connection::OpenUnix(const ServerAddress& address, BootTime deadline) {
  sockaddr_un name{};
  if (address.path.size() >= sizeof name.sun_path) {
    return Unreachable(address, ENAMETOOLONG);
  }
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) {
    return Unreachable(address, errno);
  }
  name.sun_family = AF_UNIX;
  std::memcpy(static_cast<void*>(name.sun_path), address.path.data(), address.path.size());
  while (connect(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    if (errno != EAGAIN) {
      return Unreachable(address, errno);
    }
    // The backlog is full: the daemon is there, but busy.
    DELAYD_RETURN_IF_ERROR(Nap(deadline));
  }
  return OkStatus();
}

Status Connection::OpenTcp(const ServerAddress& address, BootTime deadline) {
  const auto found = lookup_.Find(address.host, address.port, deadline, give_up_fd_);
  if (!found.ok()) {
    const bool silent = found.status().reason() == "timed_out";
    return Unavailable(CannotReach(address) +
                           (silent ? "no name server told its address in time"
                                   : std::string(found.status().message())) +
                           "; check the host name",
                       "unreachable");
  }
  if (const int error = DialTcp(found->get(), deadline, give_up_fd_, &fd_); error != 0) {
    return Unreachable(address, error);
  }
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return OkStatus();
}

Status Connection::OpenTls(const ServerAddress& address,
                           const TlsContext::Ptr& tls,
                           BootTime deadline) {
  tls_.emplace(tls, address.host);
  for (;;) {
    DELAYD_RETURN_IF_ERROR(Flush(deadline));
    if (tls_->established()) {
      return OkStatus();
    }
    StatusOr<bool> more = ReceiveTls(deadline);
    Status status = more.status();
    if (status.reason() == "connection_lost" || (more.ok() && !*more)) {
      status = Unavailable("it hung up on the handshake; check that it speaks TLS", "tls_failed");
    }
    if (status.reason() == "tls_failed") {
      return Unavailable("cannot talk to delayd at " + address.text + ": " + status.message(),
                         "tls_failed");
    }
    DELAYD_RETURN_IF_ERROR(status);
  }
}

Status Connection::Open(const ServerAddress& address,
                        BootTime deadline,
                        const TlsContext::Ptr& tls) {
  Close();
  Status status = address.path.empty() ? OpenTcp(address, deadline) : OpenUnix(address, deadline);
  if (status.ok() && address.tls) {
    status = OpenTls(address, tls, deadline);
  }
  if (!status.ok()) {
    Close();
  }
  return status;
}

Status Connection::Flush(BootTime deadline) {
  while (!tls_->output().empty()) {
    size_t sent = 0;
    const Status status = SendRaw(tls_->output(), deadline, &sent);
    tls_->Sent(sent);
    DELAYD_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

StatusOr<bool> Connection::ReceiveTls(BootTime deadline) {
  std::array<char, kRecordBytes> buffer;  // NOLINT: filled by ReceiveRaw
  DELAYD_ASSIGN_OR_RETURN(const size_t count, ReceiveRaw(buffer.data(), buffer.size(), deadline));
  if (count == 0) {
    return false;
  }
  const Status status = tls_->Receive({buffer.data(), count}, &plain_);
  if (!status.ok()) {
    static_cast<void>(Flush(deadline));  // sends the alert that tells the peer why
    return status;
  }
  DELAYD_RETURN_IF_ERROR(Flush(deadline));
  return true;
}

Status Connection::Send(std::string_view bytes, BootTime deadline, size_t* sent) {
  heard_ = false;
  if (!tls_) {
    return SendRaw(bytes, deadline, sent);
  }
  // A request counts as sent once its last record is: before that the peer cannot act on it.
  for (*sent = 0; *sent < bytes.size(); *sent += std::min(kRecordBytes, bytes.size() - *sent)) {
    while (!tls_->established()) {  // half a handshake message of the peer has come
      DELAYD_ASSIGN_OR_RETURN(const bool more, ReceiveTls(deadline));
      if (!more) {
        return Unavailable("connection lost: the peer hung up", "connection_lost");
      }
    }
    DELAYD_RETURN_IF_ERROR(tls_->Send(bytes.substr(*sent, kRecordBytes)));
    DELAYD_RETURN_IF_ERROR(Flush(deadline));
  }
  return OkStatus();
}

StatusOr<size_t> Connection::Receive(char* buffer, size_t size, BootTime deadline) {
  if (!tls_) {
    return ReceiveRaw(buffer, size, deadline);
  }
  while (plain_.empty()) {
    if (tls_->peer_closed()) {
      return size_t{0};
    }
    DELAYD_ASSIGN_OR_RETURN(const bool more, ReceiveTls(deadline));
    if (!more) {
      return Unavailable("connection lost: the end of the answer was cut off", "connection_lost");
    }
  }
  const size_t count = std::min(size, plain_.size());
  std::memcpy(buffer, plain_.data(), count);
  plain_.erase(0, count);
  return count;
}

Status Connection::SendRaw(std::string_view bytes, BootTime deadline, size_t* sent) {
  *sent = 0;
  while (*sent < bytes.size()) {
    const ssize_t count = send(fd_, bytes.data() + *sent, bytes.size() - *sent, MSG_NOSIGNAL);
    if (count >= 0) {
      *sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      DELAYD_RETURN_IF_ERROR(Wait(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return Unavailable("connection lost: " + ErrnoText(errno), "connection_lost");
    }
  }
  return OkStatus();
}

StatusOr<size_t> Connection::ReceiveRaw(char* buffer, size_t size, BootTime deadline) {
  // A peer may send for ever, faster than we read. The first bytes are exempt: they may have come
  // in time and waited in the socket while this process was stopped.
  if (heard_ && SystemClock().Sample().boot >= deadline) {
    return TimedOut();
  }
  for (;;) {
    const ssize_t count = recv(fd_, buffer, size, 0);
    if (count >= 0) {
      heard_ = true;
      return static_cast<size_t>(count);
    }
    if (errno == EAGAIN) {
      DELAYD_RETURN_IF_ERROR(Wait(POLLIN, deadline));
    } else if (errno != EINTR) {
      return Unavailable("connection lost: " + ErrnoText(errno), "connection_lost");
    }
  }
}

}  // namespace delayd::protocol
