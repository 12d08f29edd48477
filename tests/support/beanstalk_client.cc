#include "tests/support/beanstalk_client.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/unix_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace delayd::test {
namespace {

constexpr int kPatienceMs = 60'000;

int Connect(const sockaddr* address, socklen_t size) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, address, size) != 0) {
    ADD_FAILURE() << "cannot connect: " << std::strerror(errno);
  }
  return fd;
}

}  // namespace

BeanstalkClient BeanstalkClient::Tcp(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return BeanstalkClient(Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

BeanstalkClient BeanstalkClient::Unix(const std::string& path) {
  const sockaddr_un address = UnixAddress(path);
  return BeanstalkClient(Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

std::optional<BeanstalkClient> BeanstalkClient::TryUnix(const std::string& path) {
  const sockaddr_un address = UnixAddress(path);
  BeanstalkClient client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(client.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return std::nullopt;
  }
  return client;
}

BeanstalkClient::BeanstalkClient(BeanstalkClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), in_(std::move(other.in_)) {}

BeanstalkClient::~BeanstalkClient() {
  Close();
}

void BeanstalkClient::Close() {
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
  }
}

void BeanstalkClient::Send(std::string_view bytes) const {
  if (!TrySend(bytes)) {
    ADD_FAILURE() << "cannot send: " << std::strerror(errno);
  }
}

bool BeanstalkClient::TrySend(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool BeanstalkClient::Fill() {
  pollfd state{.fd = fd_, .events = POLLIN, .revents = 0};
  // A client of the storm is told by a signal to drain.
  if (TEMP_FAILURE_RETRY(::poll(&state, 1, kPatienceMs)) != 1) {
    return false;
  }
  char bytes[65536];
  const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
  if (got > 0) {
    in_.append(bytes, static_cast<size_t>(got));
  }
  return got > 0;
}

std::string BeanstalkClient::Read() {
  size_t end = std::string::npos;
  while ((end = in_.find("\r\n")) == std::string::npos) {
    if (!Fill()) {
      return "no reply";
    }
  }
  size_t size = end + 2;
  const std::string line = in_.substr(0, end);
  if (line.starts_with("RESERVED ") || line.starts_with("FOUND ") || line.starts_with("OK ")) {
    size += std::strtoull(line.c_str() + line.rfind(' '), nullptr, 10) + 2;
  }
  while (in_.size() < size) {
    if (!Fill()) {
      return "half a reply: " + in_;
    }
  }
  std::string reply = in_.substr(0, size);
  in_.erase(0, size);
  return reply;
}

std::string BeanstalkClient::Call(std::string_view command) {
  Send(command);
  Send("\r\n");
  return Read();
}

std::string BeanstalkClient::ReadToEnd() {
  while (Fill()) {
  }
  return std::exchange(in_, std::string());
}

void BeanstalkClient::HalfClose() const {
  ::shutdown(fd_, SHUT_WR);
}

}  // namespace delayd::test
