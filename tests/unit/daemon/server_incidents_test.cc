// What the turn tells the operator of by itself.
#include <array>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/log.h"
#include "tests/unit/daemon/server_fixture.h"

#include <sys/socket.h>

namespace delayd {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ServerIncidentsTest : public ServerTest {
 protected:
  ServerIncidentsTest() {
    log::Start({});
    server_clock_ = &hand_clock_;
  }

  void Start() {
    ::testing::internal::CaptureStderr();
    ServerTest::Start();
  }

  // What it has logged.
  std::string Stop() {
    EXPECT_TRUE(ServerTest::Stop().ok());
    return ::testing::internal::GetCapturedStderr();
  }

  // Each asks for something else: what the client has read before must not look like this answer.
  static void Ask(SocketClient* client, const std::string& target) {
    client->Send("GET " + target + " HTTP/1.1\r\nHost: d\r\n\r\n");
    EXPECT_THAT(client->ReadUntil(target), HasSubstr(target));
  }
};

TEST_F(ServerIncidentsTest, TimeThatTheDaemonWasNotRunIsToldOnce) {
  engine_.until_next_event = Millis(1000);
  options_.idle_timeout = Millis(3'600'000);
  Start();
  // It stays: a turn that lets go of a client might take the time before and behind the jump.
  SocketClient client(path_);
  Ask(&client, "/before");
  hand_clock_.Advance(901'000);
  Ask(&client, "/behind");
  Ask(&client, "/again");
  const std::string log = Stop();
  EXPECT_EQ(Count(log, "was not run for a while"), 1U) << log;
  EXPECT_THAT(log, ContainsRegex(" ms=(900000|8[0-9]{5})")) << "less what a turn took";
}

TEST_F(ServerIncidentsTest, ALongWaitForNothingIsNotTold) {
  engine_.until_next_event = Millis(3'600'000);
  options_.idle_timeout = Millis(3'600'000);
  options_.head_timeout = Millis(3'600'000);
  Start();
  PassATurn();
  hand_clock_.Advance(901'000);
  PassATurn();
  EXPECT_THAT(Stop(), Not(HasSubstr("was not run")));
}

// As monitoring does, for hours: nobody but its session sees such requests.
TEST_F(ServerIncidentsTest, WhoAsksWhatIsAnsweredOnTheSpotIsNotTooSlowWithARequest) {
  Start();
  SocketClient client(path_);
  for (const int64_t later : {0, 11'000, 250'000, 250'001}) {
    hand_clock_.Advance(later);
    PassATurn();
    Ask(&client, "/nothing/" + std::to_string(later) + "/");
  }
  Stop();
}

TEST_F(ServerIncidentsTest, RefusedConnectionsAreToldOnceAMinute) {
  options_.connections_max = 1;
  Start();
  SocketClient only(path_);
  Ask(&only, "/nothing");
  const auto refused = [this] { EXPECT_EQ(SocketClient(path_).ReadAll(), "no room"); };
  refused();
  refused();
  hand_clock_.Advance(61'000);
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
    client.Send(kStats);
    client.ReadUntil("damaged_store");
  };
  meet();
  meet();
  hand_clock_.Advance(61'000);
  meet();
  const std::string log = Stop();
  EXPECT_EQ(Count(log, "a request met damage in the store"), 2U) << log;
  EXPECT_THAT(log, HasSubstr("block checksum mismatch"));
}

TEST_F(ServerIncidentsTest, AClientThatCannotBeAcceptedIsASecondLater) {
  Start();
  SocketClient served(path_);
  Ask(&served, "/accepted");
  const UniqueFd late = ConnectInVain();
  Ask(&served, "/resting");  // it has taken the time from which the second counts
  hand_clock_.Advance(1000);
  Ask(&served, "/later");  // which lets it see that the second is over
  const std::string request = "GET /v1/stats HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::send(late.get(), request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  std::array<char, 16> answer{};
  EXPECT_EQ(::recv(late.get(), answer.data(), 12, MSG_WAITALL), 12);
  EXPECT_EQ(std::string_view(answer.data()), "HTTP/1.1 200");
  EXPECT_EQ(Count(Stop(), "cannot accept a connection"), 1U);
}

}  // namespace
}  // namespace delayd
