// Clients that are slow, greedy, broken or many: they are refused within limits, the daemon's
// memory stays where it was, and others are served meanwhile.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/client.h"
#include "tests/support/daemon.h"
#include "tests/support/seed.h"
#include "tests/support/socket_client.h"

#include <sys/resource.h>

namespace delayd::test {
namespace {

using ::testing::HasSubstr;

// A sanitizer's daemon keeps what was freed for a while, and shadows of all.
#if defined(DELAYD_SANITIZED)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

// A client that is let go of after minutes of silence; one that has never asked for anything, after
// seconds, in which those that come later would get its place.
SocketClient ClientThatHasAsked(const std::string& path) {
  SocketClient client(path);
  client.SendWhatFits("GET /healthz HTTP/1.1\r\nHost: d\r\n\r\n");
  return client;
}

class BadClientsTest : public ::testing::Test {
 protected:
  // The honest client, connected before the bad ones come.
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    auto client = protocol::Client::Create("unix:" + daemon_.socket());
    ASSERT_TRUE(client.ok());
    honest_ = std::move(client).value();
    memory_before_ = Memory();
  }

  double Figure(const std::string& metric) {
    const auto page = honest_->Call("GET", "/metrics", "", "", Millis(30'000));
    EXPECT_TRUE(page.ok()) << page.status().message();
    const std::string name = "\n" + metric + " ";
    const size_t at = page.ok() ? page->body.find(name) : std::string::npos;
    EXPECT_NE(at, std::string::npos);
    return at == std::string::npos ? 0 : std::stod(page->body.substr(at + name.size()));
  }

  double Memory() { return Figure("process_resident_memory_bytes"); }

  void ExpectServedWithin(double megabytes) {
    const auto answer = honest_->Call(
        "POST", "/v1/jobs", "application/json", R"({"payload":"x","delay":"1h"})", Millis(30'000));
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->status, 201) << answer->body;
    if (kMemoryIsOurs) {
      EXPECT_LT(Memory() - memory_before_, megabytes * 1e6);
    }
  }

  Daemon daemon_;
  std::unique_ptr<protocol::Client> honest_;
  double memory_before_ = 0;
};

TEST_F(BadClientsTest, TenThousandConnectionsAreTurnedAwayAboveTheLimit) {
  // Our own limit of files may allow fewer; whatever it allows is tried.
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const size_t wanted = std::min<size_t>(10'000, limit.rlim_cur - 100);
  std::vector<SocketClient> crowd;
  for (size_t i = 0; i < wanted; ++i) {
    crowd.push_back(ClientThatHasAsked(daemon_.socket()));
    ASSERT_TRUE(crowd.back().connected()) << i << ": " << std::strerror(errno);
  }
  // Not the first above it: on a busy machine the words of some before it come too late.
  EXPECT_THAT(crowd[std::min<size_t>(wanted, 2000) - 1].ReadAll(),
              HasSubstr("too_many_connections"));
  ExpectServedWithin(64);
}

// A store that gets no descriptor ends the daemon.
TEST(FewDescriptorsTest, ConnectionsLeaveTheStoreItsPart) {
  Daemon daemon;
  daemon.Under("ulimit -n 160");
  ASSERT_TRUE(daemon.Start());
  daemon.WaitForLog("limit=160 wanted=2048 connections_max=32");
  std::vector<SocketClient> crowd;
  for (int i = 0; i < 40; ++i) {
    crowd.push_back(ClientThatHasAsked(daemon.socket()));
    ASSERT_TRUE(crowd.back().connected()) << i;
  }
  EXPECT_THAT(crowd.back().ReadAll(), HasSubstr("too_many_connections"));
  crowd.clear();
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

TEST_F(BadClientsTest, HeadersWithoutEndAreCutOffAtTheLimit) {
  // Beside the honest one, as many as a low limit of files allows.
  const int count = std::min(200, static_cast<int>(Figure("delayd_connections_max")) - 1);
  std::vector<SocketClient> clients;
  for (int i = 0; i < count; ++i) {
    clients.emplace_back(daemon_.socket());
    clients.back().SendWhatFits("GET /v1/stats HTTP/1.1\r\nHost: d\r\nX: " +
                                std::string(100'000, 'x'));
  }
  for (SocketClient& client : clients) {
    EXPECT_THAT(client.ReadAll(), HasSubstr(" 431 "));
  }
  ExpectServedWithin(32);
}

TEST_F(BadClientsTest, ABodyThatIsPromisedAndNeverSentCostsNothing) {
  // Beside the honest one, as many as a low limit of files allows.
  const int count = std::min(500, static_cast<int>(Figure("delayd_connections_max")) - 1);
  std::vector<SocketClient> clients;
  for (int i = 0; i < count; ++i) {
    clients.emplace_back(daemon_.socket());
    ASSERT_TRUE(clients.back().connected()) << i;
    clients.back().SendWhatFits(
        "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
        "Content-Length: 30000000\r\n\r\n{");
  }
  ExpectServedWithin(32);
}

TEST_F(BadClientsTest, ASlowHeadIsToldSoAndEnded) {
  SocketClient slow(daemon_.socket());
  slow.SendWhatFits("GET /v1/st");
  EXPECT_THAT(slow.ReadAll(), HasSubstr(" 408 "));
  ExpectServedWithin(32);
}

TEST_F(BadClientsTest, GarbageIsRefusedAndTheConnectionClosed) {
  std::mt19937_64 random(Seed());
  for (int i = 0; i < 300; ++i) {
    SocketClient client(daemon_.socket());
    std::string bytes(1 + random() % 20'000, '\0');
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
    client.SendWhatFits(bytes + "\r\n\r\n");
    EXPECT_THAT(client.ReadAll(), ::testing::StartsWith("HTTP/1.1 4"));
  }
  ExpectServedWithin(32);
}

TEST_F(BadClientsTest, ClientsThatAskAndNeverReadAreBounded) {
  const auto big =
      honest_->Call("POST",
                    "/v1/jobs",
                    "application/json",
                    "{\"delay\":\"1h\",\"payload\":\"" + std::string(900'000, 'p') + "\"}",
                    Millis(30'000));
  ASSERT_TRUE(big.ok() && big->status == 201);
  std::string requests;
  for (int i = 0; i < 200; ++i) {
    requests += "GET /v1/jobs/1 HTTP/1.1\r\nHost: d\r\n\r\n";
  }
  std::vector<SocketClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(daemon_.socket());
    clients.back().SendWhatFits(requests);
  }
  ExpectServedWithin(128);  // twenty times: an answer or two, and the bytes of one more
}

}  // namespace
}  // namespace delayd::test
