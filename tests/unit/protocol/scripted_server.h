// tests/unit/protocol/scripted_server.h — a server on a Unix socket that plays one script per
// connection, for tests of the client.
//
// Threads: the scripts run on one thread of the server's own, one after the other.
#pragma once

#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unix_address.h"

namespace delayd::protocol {

class ScriptedServer {
 public:
  using Script = std::function<void(int fd)>;

  explicit ScriptedServer(std::vector<Script> scripts) {
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un name = test::UnixAddress(path());
    DELAYD_CHECK(bind(listener_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    DELAYD_CHECK(listen(listener_, 8) == 0);
    thread_ = std::thread([this, scripts = std::move(scripts)] {
      for (const Script& script : scripts) {
        const int fd = accept(listener_, nullptr, nullptr);
        script(fd);
        close(fd);
      }
    });
  }

  ~ScriptedServer() {
    thread_.join();
    close(listener_);
  }

  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string path() const { return directory_.Sub("d.sock"); }

  std::string address() const { return "unix:" + path(); }

  // Waits for room among those who are to be accepted.
  int Connect() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un name = test::UnixAddress(path());
    DELAYD_CHECK(connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    return fd;
  }

  // Reads a request up to the end of a body of `body_bytes`; empty when the client has closed.
  static std::string ReadRequest(int fd, size_t body_bytes = 0) {
    std::string text;
    char buffer[4096];
    for (;;) {
      const size_t head = text.find("\r\n\r\n");
      if (head != std::string::npos && text.size() >= head + 4 + body_bytes) {
        return text;
      }
      const ssize_t count = read(fd, buffer, sizeof buffer);
      if (count <= 0) {
        return {};
      }
      text.append(buffer, static_cast<size_t>(count));
    }
  }

  static void Write(int fd, const std::string& text) {
    size_t at = 0;
    while (at < text.size()) {
      const ssize_t count = send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (count <= 0) {
        return;
      }
      at += static_cast<size_t>(count);
    }
  }

  // Until the client closes.
  static void AwaitEnd(int fd) {
    char buffer[4096];
    while (read(fd, buffer, sizeof buffer) > 0) {
    }
  }

 private:
  const test::TempDir directory_;
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace delayd::protocol
