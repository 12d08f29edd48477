// tests/support/socket_client.h — a blocking client of a socket: any bytes out, any bytes in.
//
// Errors:  test failures; an answer that does not come in 30 s is one.
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace delayd::test {

class SocketClient {
 public:
  explicit SocketClient(const std::string& path);  // a Unix socket's
  static SocketClient Tcp(uint16_t port);          // on 127.0.0.1

  bool connected() const { return connected_; }

  void Send(std::string_view bytes);
  // As much as the other side takes without waiting, which may have hung up.
  void SendWhatFits(std::string_view bytes);
  void EndSending();

  // Reads until what came contains `mark` so many times, or the other side has closed.
  std::string ReadUntil(std::string_view mark, size_t times = 1);
  std::string ReadAll();

  void Close() { fd_ = UniqueFd(); }

 private:
  explicit SocketClient(UniqueFd fd) : fd_(std::move(fd)) {}

  bool ReadSome();

  UniqueFd fd_;
  bool connected_ = false;
  std::string received_;
};

}  // namespace delayd::test
