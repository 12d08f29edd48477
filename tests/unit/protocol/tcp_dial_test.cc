#include "protocol/tcp_dial.h"

#include <unistd.h>

#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/clock.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace delayd::protocol {
namespace {

// A port of this machine.
class Port {
 public:
  Port() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    name_.sin_family = AF_INET;
    name_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name_;
    DELAYD_CHECK(bind(fd_, address(), size) == 0);
    DELAYD_CHECK(getsockname(fd_, address(), &size) == 0);
  }

  ~Port() {
    close(fd_);
    close(first_);
  }

  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  void Listen() { DELAYD_CHECK(listen(fd_, 0) == 0); }

  // One waits to be accepted, and no more may: what comes now is dropped.
  void ListenSilently() {
    Listen();
    first_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    DELAYD_CHECK(connect(first_, address(), sizeof name_) == 0);
  }

  sockaddr* address() { return reinterpret_cast<sockaddr*>(&name_); }

  bool IsPeerOf(int fd) const {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    DELAYD_CHECK(getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0);
    return peer.sin_port == name_.sin_port;
  }

 private:
  int fd_;
  int first_ = -1;
  sockaddr_in name_{};
};

struct Dialled {
  int error = 0;
  int fd = -1;
};

Dialled DialAll(const std::vector<Port*>& ports, Millis time, int give_up_fd = -1) {
  std::vector<addrinfo> list(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    list[i].ai_family = AF_INET;
    list[i].ai_addr = ports[i]->address();
    list[i].ai_addrlen = sizeof(sockaddr_in);
    list[i].ai_next = i + 1 < ports.size() ? &list[i + 1] : nullptr;
  }
  Dialled dialled;
  dialled.error = DialTcp(list.data(), SystemClock().Sample().boot + time, give_up_fd, &dialled.fd);
  return dialled;
}

TEST(TcpDialTest, AnAddressThatDropsPacketsKeepsNobodyFromTheNext) {
  Port silent;
  silent.ListenSilently();
  Port refusing;
  Port good;
  good.Listen();
  const Dialled dialled = DialAll({&silent, &refusing, &good}, Millis(60'000));
  ASSERT_EQ(dialled.error, 0);
  EXPECT_TRUE(good.IsPeerOf(dialled.fd));
  close(dialled.fd);
}

TEST(TcpDialTest, OneThatIsSlowIsWaitedForWhenTheOthersRefuse) {
  Port silent;
  silent.ListenSilently();
  Port refusing;
  EXPECT_EQ(DialAll({&silent, &refusing}, Millis(300)).error, ETIMEDOUT);
}

TEST(TcpDialTest, WhenAllRefuseThatIsSaidAtOnce) {
  Port one;
  Port two;
  EXPECT_EQ(DialAll({&one, &two}, Millis(3'600'000)).error, ECONNREFUSED);
}

TEST(TcpDialTest, IsGivenUpWhenItsCallerSaysSo) {
  Port silent;
  silent.ListenSilently();
  const int fd = eventfd(1, EFD_CLOEXEC);
  EXPECT_EQ(DialAll({&silent}, Millis(3'600'000), fd).error, ETIMEDOUT);
  close(fd);
}

}  // namespace
}  // namespace delayd::protocol
