#include "daemon/service_notify.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "tests/support/temp_dir.h"

#include <sys/socket.h>
#include <sys/un.h>

namespace delayd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

int64_t MonotonicMicros() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

class ServiceNotifyTest : public ::testing::Test {
 protected:
  ServiceNotifyTest() {
    const std::string path = dir_.Sub("notify");
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(::bind(manager_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }

  ~ServiceNotifyTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
  }

  std::string Heard() const {
    char text[1024];
    const ssize_t got = ::recv(manager_.get(), text, sizeof text, MSG_DONTWAIT);
    return got > 0 ? std::string(text, static_cast<size_t>(got)) : "";
  }

  const test::TempDir dir_;
  const UniqueFd manager_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const ServiceNotify notify_{};
};

TEST_F(ServiceNotifyTest, ALongLoadAsksForMoreTime) {
  notify_.Loading(7);
  EXPECT_THAT(Heard(), HasSubstr("timers: 7\nEXTEND_TIMEOUT_USEC=60000000"));
}

// systemd takes the end of a reload that began before its own request for that of another.
TEST_F(ServiceNotifyTest, AReloadTellsWhenItBegan) {
  const std::string begin = "RELOADING=1\nMONOTONIC_USEC=";
  const int64_t before = MonotonicMicros();
  notify_.Reloading();
  const std::string heard = Heard();
  ASSERT_THAT(heard, StartsWith(begin));
  const int64_t told = std::strtoll(heard.c_str() + begin.size(), nullptr, 10);
  EXPECT_GE(told, before);
  EXPECT_LE(told, MonotonicMicros());
}

TEST_F(ServiceNotifyTest, TheHeartIsToBeatTwiceInTheWatchdogsTime) {
  EXPECT_EQ(notify_.HeartbeatInterval(), std::nullopt);
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  EXPECT_EQ(notify_.HeartbeatInterval(), Millis(1500));
}

}  // namespace
}  // namespace delayd
