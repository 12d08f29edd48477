#include "tests/unit/daemon/socket_client.h"

#include <poll.h>

#include <cstring>

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>

namespace delayd {

SocketClient::SocketClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  connected_ =
      ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void SocketClient::Send(std::string_view bytes) {
  ASSERT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

void SocketClient::EndSending() {
  ::shutdown(fd_.get(), SHUT_WR);
}

std::string SocketClient::ReadUntil(std::string_view mark) {
  while (received_.find(mark) == std::string::npos && ReadSome()) {
  }
  return received_;
}

std::string SocketClient::ReadAll() {
  while (ReadSome()) {
  }
  return received_;
}

bool SocketClient::ReadSome() {
  pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  constexpr int kGiveUpMs = 20'000;
  if (::poll(&wait, 1, kGiveUpMs) != 1) {
    ADD_FAILURE() << "no answer; so far: " << received_;
    return false;
  }
  char buffer[4096];
  const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  if (got <= 0) {
    return false;
  }
  received_.append(buffer, static_cast<size_t>(got));
  return true;
}

}  // namespace delayd
