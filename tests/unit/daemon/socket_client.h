// tests/unit/daemon/socket_client.h — a blocking client of a Unix socket, for tests only.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace delayd {

class SocketClient {
 public:
  explicit SocketClient(const std::string& path);

  bool connected() const { return connected_; }

  void Send(std::string_view bytes);
  void EndSending();

  // Reads until what came contains `mark`, or the other side has closed.
  std::string ReadUntil(std::string_view mark);
  std::string ReadAll();

  void Close() { fd_ = UniqueFd(); }

 private:
  bool ReadSome();

  UniqueFd fd_;
  bool connected_ = false;
  std::string received_;
};

}  // namespace delayd
