#include "daemon/listener.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/errno_text.h"
#include "daemon/config_values.h"
#include "daemon/ip_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace delayd {

namespace {

constexpr int kBacklog = 1024;

Status InUse(const std::string& path, std::string_view key) {
  return FailedPrecondition("socket " + path +
                                " is in use by another daemon; stop it, or choose another " +
                                std::string(key),
                            "socket_in_use");
}

Status CannotOpen(const std::string& what, int error, const std::string& cure) {
  const std::string message =
      "cannot listen on " + what + ": " + ErrnoText(error) + "; " + cure + ServiceCure(error, what);
  return error == EACCES || error == EPERM ? PermissionDenied(message) : Unavailable(message);
}

UniqueFd NewSocket(int family) {
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  DELAYD_CHECK(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Keeps out another daemon that starts with the same socket at the same moment. The lock file is
// never removed: a lock on a file that may vanish protects nothing.
StatusOr<UniqueFd> LockBeside(const std::string& path, std::string_view key) {
  const std::string name = path + ".lock";
  UniqueFd lock(::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) {
    return CannotOpen(path,
                      errno,
                      "the directory must exist and be writable for the daemon; create it or set " +
                          std::string(key));
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK
               ? InUse(path, key)
               : CannotOpen(path,
                            errno,
                            name +
                                " cannot be locked: look at its file system, or choose another " +
                                std::string(key));
  }
  return lock;
}

// Removes a socket file on which nobody answers; anything else stays and is an error.
Status RemoveStale(const std::string& path, std::string_view key) {
  struct stat info {};

  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? OkStatus() : CannotOpen(path, errno, "check the path");
  }
  if (!S_ISSOCK(info.st_mode)) {
    return FailedPrecondition(
        path + " exists and is not a socket; move it away, or choose another " + std::string(key));
  }
  const sockaddr_un address = UnixAddress(path);
  const UniqueFd probe = NewSocket(AF_UNIX);
  if (!probe.valid()) {
    return CannotOpen(path, errno, "raise the limit of open files");
  }
  const int result =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  // Only ECONNREFUSED means that nobody listens; a full backlog (EAGAIN) means a busy listener.
  if (result == 0 || errno != ECONNREFUSED) {
    return InUse(path, key);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return CannotOpen(path, errno, "remove the old socket by hand");
  }
  return OkStatus();
}

struct TcpAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

TcpAddress ToSockaddr(const ListenAddress& address) {
  TcpAddress result;
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    std::memcpy(&result.storage, &v4, sizeof v4);
    result.length = sizeof v4;
    return result;
  }
  sockaddr_in6 v6{};
  DELAYD_CHECK(::inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) == 1);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  std::memcpy(&result.storage, &v6, sizeof v6);
  result.length = sizeof v6;
  return result;
}

TcpAddress BoundAddress(int fd) {
  TcpAddress bound;
  bound.length = sizeof bound.storage;
  DELAYD_CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) == 0);
  return bound;
}

uint16_t PortOf(const sockaddr_storage& bound) {
  // The port is at the same offset in both families.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  in_port_t port = 0;
  std::memcpy(
      &port, reinterpret_cast<const char*>(&bound) + offsetof(sockaddr_in, sin_port), sizeof port);
  return ntohs(port);
}

std::string HostOf(const sockaddr_storage& bound) {
  char text[INET6_ADDRSTRLEN] = "";
  if (bound.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &bound, sizeof v6);
    return ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &bound, sizeof v4);
  return ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
}

Status CheckReach(const ListenAddress& address, Reach reach) {
  if (reach == Reach::kAnywhere || IsLoopback(address)) {
    return OkStatus();
  }
  return InvalidArgument("'" + address.host +
                         "' can be reached from other machines; only an HTTP API with TLS and "
                         "tokens may listen there (tls.certificate, tls.key, access.token_file)");
}

std::string TcpCure(int error, std::string_view key) {
  const std::string another = "choose another " + std::string(key);
  switch (error) {
    case EAFNOSUPPORT:
      return "the service unit allows the Unix socket only; install the drop-in delayd-tcp.conf, "
             "delayd(8) says how";
    case EACCES:
    case EPERM:
      return another + "; ports below 1024 are root's, and a service may be kept from others";
    case EADDRNOTAVAIL:
      return "no network interface has this address (ip address lists them); " + another;
    default:
      return "stop whoever uses the port, or " + another;
  }
}

bool IsListeningStream(int fd) {
  int type = 0;
  int listening = 0;
  socklen_t length = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM &&
         ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 && listening != 0;
}

}  // namespace

StatusOr<Listener> Listener::OpenUnix(const std::string& path, std::string_view key) {
  const std::string cure = "check the directory, or choose another " + std::string(key);
  StatusOr<UniqueFd> lock = LockBeside(path, key);
  DELAYD_RETURN_IF_ERROR(lock.status());
  DELAYD_RETURN_IF_ERROR(RemoveStale(path, key));
  Listener listener;
  listener.lock_ = std::move(lock).value();
  listener.fd_ = NewSocket(AF_UNIX);
  const sockaddr_un address = UnixAddress(path);
  // The umask (0077, set in main) restricts the socket to its owner until chmod opens it to the
  // group; it is never open to others.
  if (!listener.fd_.valid() ||
      ::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return CannotOpen(path, errno, cure);
  }
  listener.path_ = path;
  listener.name_ = "unix:" + path;
  if (::chmod(path.c_str(), 0660) != 0 || ::listen(listener.fd(), kBacklog) != 0) {
    return CannotOpen(path, errno, cure);
  }
  return listener;
}

StatusOr<Listener> Listener::OpenTcp(std::string_view address, Reach reach, std::string_view key) {
  const StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  DELAYD_RETURN_IF_ERROR(parsed.status());
  DELAYD_RETURN_IF_ERROR(CheckReach(*parsed, reach));
  const TcpAddress target = ToSockaddr(*parsed);
  Listener listener;
  listener.fd_ = NewSocket(target.storage.ss_family);
  const int on = 1;
  if (!listener.fd_.valid() ||
      ::setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&target.storage), target.length) !=
          0 ||
      ::listen(listener.fd(), kBacklog) != 0) {
    const int error = errno;
    return CannotOpen(std::string(address), error, TcpCure(error, key));
  }
  listener.is_tcp_ = true;
  const uint16_t port = PortOf(BoundAddress(listener.fd()).storage);
  listener.name_ = "http://" + WithPort(parsed->host, port);
  return listener;
}

StatusOr<Listener> Listener::Adopt(UniqueFd fd, Reach reach) {
  if (!IsListeningStream(fd.get())) {
    return FailedPrecondition(
        "what systemd passed is no listening stream socket; its unit needs ListenStream= and "
        "Accept=no",
        "passed_socket");
  }
  const TcpAddress bound = BoundAddress(fd.get());
  Listener listener;
  if (bound.storage.ss_family == AF_UNIX) {
    // A path may fill sun_path without a terminating NUL; the storage has room for one.
    listener.name_ = "unix:" + std::string(reinterpret_cast<const char*>(&bound.storage) +
                                           offsetof(sockaddr_un, sun_path));
  } else {
    const ListenAddress address{HostOf(bound.storage), PortOf(bound.storage)};
    DELAYD_RETURN_IF_ERROR(CheckReach(address, reach));
    listener.is_tcp_ = true;
    listener.name_ = "http://" + WithPort(address.host, address.port);
  }
  const int flags = ::fcntl(fd.get(), F_GETFL);
  DELAYD_CHECK(flags >= 0 && ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) == 0 &&
               ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) == 0);
  listener.fd_ = std::move(fd);
  return listener;
}

Listener::~Listener() {
  if (fd_.valid() && !path_.empty()) {
    ::unlink(path_.c_str());
  }
}

}  // namespace delayd
