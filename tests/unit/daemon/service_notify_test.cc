#include "daemon/service_notify.h"

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/notify_socket.h"
#include "tests/support/temp_dir.h"

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
  ServiceNotifyTest() { ::setenv("NOTIFY_SOCKET", path_.c_str(), 1); }

  ~ServiceNotifyTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
  }

  const test::TempDir dir_;
  const std::string path_ = dir_.Sub("notify");
  const test::NotifySocket manager_{path_};
  const ServiceNotify notify_{};
};

TEST_F(ServiceNotifyTest, ALongLoadAsksForMoreTime) {
  notify_.Loading(7);
  EXPECT_THAT(manager_.Heard(), HasSubstr("timers: 7\nEXTEND_TIMEOUT_USEC=60000000"));
}

// systemd takes the end of a reload that began before its own request for that of another.
TEST_F(ServiceNotifyTest, AReloadTellsWhenItBegan) {
  const std::string begin = "RELOADING=1\nMONOTONIC_USEC=";
  const int64_t before = MonotonicMicros();
  notify_.Reloading();
  const std::string heard = manager_.Heard();
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
