#include "tests/bench/load/load_connection.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace delayd::load {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

int Connect(const sockaddr* address, socklen_t size, const std::string& target) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, address, size) != 0) {
    Fail("cannot connect to " + target + ": " + std::strerror(errno));
  }
  return fd;
}

int ConnectTo(const std::string& target) {
  if (target.starts_with("unix:")) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = target.substr(5);
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address, target);
  }
  const size_t colon = target.rfind(':');
  if (!target.starts_with("tcp:") || colon < 4) {
    Fail("the target must be unix:PATH or tcp:ADDRESS:PORT, not " + target);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoul(target.substr(colon + 1))));
  if (::inet_pton(AF_INET, target.substr(4, colon - 4).c_str(), &address.sin_addr) != 1) {
    Fail("no address: " + target);
  }
  const int fd = Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address, target);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

void Fail(const std::string& what) {
  std::fprintf(stderr, "delayd_load: %s\n", what.c_str());
  std::exit(1);
}

LoadConnection::LoadConnection(const std::string& target) : fd_(ConnectTo(target)) {}

LoadConnection::~LoadConnection() {
  ::close(fd_);
}

bool LoadConnection::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t sent =
        ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) {
        return false;
      }
      Fail(std::string("the server has gone: ") + std::strerror(errno));
    }
    sent_ += static_cast<size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

bool LoadConnection::Fill() {
  if (read_ > in_.size() / 2) {  // a long answer that comes in parts is not moved each time
    in_.erase(0, read_);
    read_ = 0;
  }
  const size_t size = in_.size();
  in_.resize(size + kReadBytes);
  const ssize_t got = ::recv(fd_, in_.data() + size, kReadBytes, MSG_DONTWAIT);
  in_.resize(size + static_cast<size_t>(got > 0 ? got : 0));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    Fail("the server has closed the connection");
  }
  return got > 0;
}

void LoadConnection::Exchange() {
  while (!Flush()) {
    Fill();
  }
  pollfd state{.fd = fd_, .events = POLLIN, .revents = 0};
  ::poll(&state, 1, -1);
  Fill();
}

}  // namespace delayd::load
