// tests/support/notify_socket.h — the receiving end of the service manager's notify socket.
//
// Errors:  a failed check when the system refuses the socket.
// Threads: one.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tests/support/process.h"
#include "tests/support/unix_address.h"

namespace delayd::test {

class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path)
      : path_(path), fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = UnixAddress(path);
    ::unlink(path.c_str());
    DELAYD_CHECK(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }

  ~NotifySocket() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }

  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // The next message, which is not waited for; empty when none is there.
  std::string Heard() const {
    char text[4096];
    const ssize_t size = ::recv(fd_, text, sizeof text, MSG_DONTWAIT);
    return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
  }

  bool WaitForReady(Process* process) const { return WaitFor("READY=1", process); }

  // Whether a message with this text came before the process ended, or a minute passed. Those
  // before it are dropped.
  bool WaitFor(std::string_view wanted, Process* process) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      const bool has_ended = process->HasEnded();  // first: its last words may come before its end
      pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 5) == 1) {
        if (Heard().find(wanted) != std::string::npos) {
          return true;
        }
      } else if (has_ended) {
        return false;
      }
    }
    return false;
  }

 private:
  std::string path_;
  int fd_;
};

}  // namespace delayd::test
