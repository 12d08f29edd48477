#include "protocol/tcp_dial.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "protocol/poll_until.h"

#include <sys/socket.h>

namespace delayd::protocol {
namespace {

constexpr Millis kHeadStart{250};

class TcpDial {
 public:
  explicit TcpDial(int give_up_fd) : entries_{{give_up_fd, POLLIN, 0}} {}

  ~TcpDial() {
    for (size_t i = 1; i < entries_.size(); ++i) {
      close(entries_[i].fd);
    }
  }

  TcpDial(const TcpDial&) = delete;
  TcpDial& operator=(const TcpDial&) = delete;

  // False when it failed at once.
  bool Start(const addrinfo& address) {
    const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      error_ = errno;
      return false;
    }
    if (connect(fd, address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS &&
        errno != EINTR) {
      error_ = errno;
      close(fd);
      return false;
    }
    entries_.push_back({fd, POLLOUT, 0});
    return true;
  }

  bool trying() const { return entries_.size() > 1; }

  // The errno of the attempt that failed last.
  int error() const { return error_; }

  // Waits until one is connected and returns it; -1 when one has failed or the time is over.
  int Wait(BootTime deadline) {
    if (PollUntil(entries_, deadline) <= 0) {
      return -1;
    }
    given_up_ = entries_[0].revents != 0;
    for (size_t i = entries_.size() - 1; i > 0; --i) {
      if (entries_[i].revents == 0) {
        continue;
      }
      const int fd = entries_[i].fd;
      entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(i));
      socklen_t length = sizeof error_;
      if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_, &length) == 0 && error_ == 0) {
        return fd;
      }
      close(fd);
    }
    return -1;
  }

  bool given_up() const { return given_up_; }

 private:
  std::vector<pollfd> entries_;  // the first is give_up_fd
  int error_ = ECONNREFUSED;
  bool given_up_ = false;
};

}  // namespace

int DialTcp(const addrinfo* addresses, BootTime deadline, int give_up_fd, int* socket_fd) {
  const SystemClock clock;
  TcpDial dial(give_up_fd);
  for (const addrinfo* next = addresses;;) {
    if (next != nullptr) {
      const bool started = dial.Start(*next);
      next = next->ai_next;
      if (!started) {
        continue;
      }
    }
    if (!dial.trying()) {
      return dial.error();
    }
    const BootTime next_at = clock.Sample().boot + kHeadStart;
    const int fd = dial.Wait(next == nullptr ? deadline : std::min(deadline, next_at));
    if (fd >= 0) {
      *socket_fd = fd;
      return 0;
    }
    if (dial.given_up() || clock.Sample().boot >= deadline) {
      return ETIMEDOUT;
    }
  }
}

}  // namespace delayd::protocol
