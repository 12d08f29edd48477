// What the turn tells the operator of by itself.
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/http/http_session.h"
#include "daemon/log.h"
#include "daemon/server.h"
#include "storage/memory_job_store.h"
#include "tests/support/plain_report.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/socket_client.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace delayd {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Far ahead of the machine's, so that the timer never wakes the server: clients do.
class HandClock final : public Clock {
 public:
  [[nodiscard]] Now Sample() const override {
    const int64_t ms = ms_.load();
    return {.wall = WallTime(Millis(ms)), .boot = BootTime(Millis(ms))};
  }

  void Advance(int64_t ms) { ms_ += ms; }

 private:
  std::atomic<int64_t> ms_{1'000'000'000'000};
};

class ServerIncidentsTest : public ::testing::Test {
 protected:
  ServerIncidentsTest() { log::Start({}); }

  void Start() {
    ::testing::internal::CaptureStderr();
    std::promise<void> listening;
    thread_ = std::thread([this, &listening] {
      Server server(options_, &engine_, &store_, &clock_);
      StatusOr<Listener> listener = Listener::OpenUnix(path_);
      ASSERT_TRUE(listener.ok()) << listener.status().message();
      server.Listen(
          std::move(listener).value(),
          [this] { return std::make_unique<http::HttpSession>(reader_options_, router_); },
          "no room");
      listening.set_value();
      EXPECT_TRUE(server.Run().ok());
    });
    listening.get_future().wait();
  }

  // What it has logged.
  std::string Stop() {
    ::kill(::getpid(), SIGTERM);
    thread_.join();
    return ::testing::internal::GetCapturedStderr();
  }

  void Ask(SocketClient* client) {
    client->Send("GET /v1/stats HTTP/1.1\r\nHost: d\r\n\r\n");
    client->ReadUntil("commit_sequence");
  }

  void PassATurn() {
    SocketClient client(path_);
    Ask(&client);
  }

  const test::TempDir directory_;
  const std::string path_ = directory_.Sub("d.sock");
  ServerOptions options_;
  FakeEngine engine_;
  storage::MemoryJobStore store_;
  HandClock clock_;
  const http::ReaderOptions reader_options_;
  const http::Router router_{http::RouterOptions{.service = &test::kPlainReport}};
  std::thread thread_;
};

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(ServerIncidentsTest, TimeThatTheDaemonWasNotRunIsToldOnce) {
  engine_.until_next_event = Millis(1000);
  Start();
  PassATurn();
  clock_.Advance(901'000);
  PassATurn();
  PassATurn();
  const std::string log = Stop();
  EXPECT_EQ(Count(log, "was not run for a while"), 1U) << log;
  EXPECT_THAT(log, ContainsRegex(" ms=(900000|899[0-9]{3})")) << "less what a turn took";
}

TEST_F(ServerIncidentsTest, ALongWaitForNothingIsNotTold) {
  engine_.until_next_event = Millis(3'600'000);
  options_.idle_timeout = Millis(3'600'000);
  options_.head_timeout = Millis(3'600'000);
  Start();
  PassATurn();
  clock_.Advance(901'000);
  PassATurn();
  EXPECT_THAT(Stop(), Not(HasSubstr("was not run")));
}

// As monitoring does, for hours: nobody but its session sees such requests.
TEST_F(ServerIncidentsTest, WhoAsksWhatIsAnsweredOnTheSpotIsNotTooSlowWithARequest) {
  Start();
  SocketClient client(path_);
  for (const int64_t later : {0, 11'000, 250'000, 250'001}) {
    clock_.Advance(later);
    PassATurn();
    const std::string target = "/nothing/" + std::to_string(later);
    client.Send("GET " + target + " HTTP/1.1\r\nHost: d\r\n\r\n");
    EXPECT_THAT(client.ReadUntil(target), HasSubstr(target));
  }
  Stop();
}

TEST_F(ServerIncidentsTest, RefusedConnectionsAreToldOnceAMinute) {
  options_.connections_max = 1;
  Start();
  SocketClient only(path_);
  Ask(&only);
  const auto refused = [this] { EXPECT_EQ(SocketClient(path_).ReadAll(), "no room"); };
  refused();
  refused();
  clock_.Advance(61'000);
  refused();
  refused();
  const std::string log = Stop();
  EXPECT_EQ(Count(log, "connections are refused"), 2U) << log;
  EXPECT_THAT(log, HasSubstr("refused_so_far=3"));
}

TEST_F(ServerIncidentsTest, DamageThatARequestMetIsToldOnceAMinute) {
  engine_.stats_status = DataLoss("timers: block checksum mismatch", "damaged_store");
  Start();
  const auto meet = [this] {
    SocketClient client(path_);
    client.Send("GET /v1/stats HTTP/1.1\r\nHost: d\r\n\r\n");
    client.ReadUntil("damaged_store");
  };
  meet();
  meet();
  clock_.Advance(61'000);
  meet();
  const std::string log = Stop();
  EXPECT_EQ(Count(log, "a request met damage in the store"), 2U) << log;
  EXPECT_THAT(log, HasSubstr("block checksum mismatch"));
}

TEST_F(ServerIncidentsTest, AClientThatCannotBeAcceptedIsASecondLater) {
  Start();
  SocketClient served(path_);
  Ask(&served);
  const int late = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path_.copy(address.sun_path, sizeof address.sun_path - 1);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  const auto warnings = [] { return log::Counts()[static_cast<size_t>(log::Level::kWarn)]; };
  const uint64_t before = warnings();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(::connect(late, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  while (warnings() == before) {
    std::this_thread::yield();
  }
  ::setrlimit(RLIMIT_NOFILE, &limit);
  Ask(&served);
  clock_.Advance(1000);
  Ask(&served);  // which lets it see that the second is over
  const std::string request = "GET /v1/stats HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::send(late, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::array<char, 16> answer{};
  EXPECT_EQ(::recv(late, answer.data(), 12, MSG_WAITALL), 12);
  EXPECT_EQ(std::string_view(answer.data()), "HTTP/1.1 200");
  ::close(late);
  EXPECT_EQ(Count(Stop(), "cannot accept a connection"), 1U);
}

}  // namespace
}  // namespace delayd
