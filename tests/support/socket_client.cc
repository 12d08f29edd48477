#include "tests/support/socket_client.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

#include "tests/support/unix_address.h"

#include <netinet/in.h>

namespace delayd::test {

SocketClient::SocketClient(const std::string& path)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_un address = UnixAddress(path);
  connected_ =
      ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

SocketClient SocketClient::Tcp(uint16_t port) {
  SocketClient client(UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  client.connected_ =
      ::connect(client.fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return client;
}

void SocketClient::Send(std::string_view bytes) {
  ASSERT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

void SocketClient::SendWhatFits(std::string_view bytes) {
  [[maybe_unused]] const ssize_t sent =
      ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void SocketClient::EndSending() {
  ::shutdown(fd_.get(), SHUT_WR);
}

std::string SocketClient::ReadUntil(std::string_view mark, size_t times) {
  const auto has_all = [&] {
    size_t at = 0;
    for (size_t count = 0; count < times; ++count) {
      at = received_.find(mark, at);
      if (at == std::string::npos) {
        return false;
      }
      at += mark.size();
    }
    return true;
  };
  while (!has_all() && ReadSome()) {
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
  constexpr int kGiveUpMs = 60'000;
  // The server may be part of this process, and a test may send it a signal.
  if (TEMP_FAILURE_RETRY(::poll(&wait, 1, kGiveUpMs)) != 1) {
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

}  // namespace delayd::test
