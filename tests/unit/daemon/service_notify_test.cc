#include "daemon/service_notify.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "tests/support/notify_socket.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unix_address.h"

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
  ServiceNotifyTest() { ::setenv("NOTIFY_SOCKET", path_.c_str(), 1); }

  ~ServiceNotifyTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
  }

  void FillItsQueue() const {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_un address = test::UnixAddress(path_);
    constexpr std::string_view kFiller = "STATUS=busy";
    while (::sendto(socket.get(),
                    kFiller.data(),
                    kFiller.size(),
                    0,
                    reinterpret_cast<const sockaddr*>(&address),
                    sizeof address) > 0) {
    }
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

std::atomic<int> signals_taken{0};

TEST_F(ServiceNotifyTest, ASignalWhileTheManagerIsBusyLosesNoMessage) {
  struct sigaction action {};

  action.sa_handler = [](int) { ++signals_taken; };  // without SA_RESTART

  struct sigaction before {};

  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  FillItsQueue();
  std::atomic<bool> told = false;
  std::thread daemon([&] {
    notify_.Stopping();
    told = true;
  });
  for (int i = 1; i <= 50 && !told; ++i) {
    ASSERT_EQ(::pthread_kill(daemon.native_handle(), SIGUSR1), 0);
    while (signals_taken < i && !told) {
      std::this_thread::yield();
    }
  }
  EXPECT_FALSE(told);
  std::string heard = manager_.Heard();  // makes room for one
  daemon.join();
  for (std::string next = heard; !next.empty(); next = manager_.Heard()) {
    heard = next;
  }
  EXPECT_THAT(heard, StartsWith("STOPPING=1"));
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST_F(ServiceNotifyTest, TheHeartIsToBeatTwiceInTheWatchdogsTime) {
  EXPECT_EQ(notify_.HeartbeatInterval(), std::nullopt);
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  EXPECT_EQ(notify_.HeartbeatInterval(), Millis(1500));
}

}  // namespace
}  // namespace delayd
