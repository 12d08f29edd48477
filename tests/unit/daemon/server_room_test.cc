// What all clients together may have lying in the daemon.
#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/daemon/server_fixture.h"

namespace delayd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerRoomTest : public ServerTest {
 protected:
  ServerRoomTest() {
    options_.held_bytes_max = 300'000;
    options_.give_back_memory = [this] { given_back_.release(); };
    options_.memory_rest = Millis(50);
    Start();
  }

  // The head of a request whose body has so many bytes.
  static std::string Head(size_t bytes) {
    return "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
           "Content-Length: " +
           std::to_string(bytes) + "\r\n\r\n";
  }

  std::counting_semaphore<> given_back_{0};
};

TEST_F(ServerRoomTest, P10WhoHasMostIsLetGoOfWhenAllTogetherHaveTooMuch) {
  const std::string job = R"({"queue":"q"})";
  SocketClient small(path_);
  small.Send(Head(30'000) + std::string(30'000 - job.size(), ' '));
  SocketClient large(path_);
  large.Send(Head(500'000) + std::string(150'000, ' '));
  SocketClient other(path_);
  other.Send(Head(140'000) + std::string(140'000 - job.size(), ' '));
  EXPECT_THAT(large.ReadAll(), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("too_much_at_once")));
  other.Send(job);
  EXPECT_THAT(other.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 201"));
  small.Send(job);
  EXPECT_THAT(small.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 201"));
  // What was let go of, and what has been asked, takes no room any more.
  SocketClient next(path_);
  next.Send(Head(150'000) + std::string(150'000 - job.size(), ' ') + job);
  EXPECT_THAT(next.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 201"));
}

TEST_F(ServerRoomTest, P10WhoHasGoneTakesNoRoom) {
  for (int i = 0; i < 3; ++i) {
    SocketClient gone(path_);
    gone.Send(Head(500'000) + std::string(140'000, ' '));
    gone.EndSending();
    gone.ReadAll();
  }
  const std::string job = R"({"queue":"q"})";
  SocketClient next(path_);
  next.Send(Head(140'000) + std::string(140'000 - job.size(), ' ') + job);
  EXPECT_THAT(next.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 201"));
}

TEST_F(ServerRoomTest, P10WhatManyClientsTookIsGivenBackWhenTheyHaveGone) {
  const auto come_and_go = [this](int clients) {
    for (int i = 0; i < clients; ++i) {
      const SocketClient client(path_);
    }
  };
  come_and_go(100);
  EXPECT_FALSE(given_back_.try_acquire_for(std::chrono::milliseconds(200))) << "it is little";
  come_and_go(600);
  EXPECT_TRUE(given_back_.try_acquire_for(std::chrono::minutes(1)));
  EXPECT_FALSE(given_back_.try_acquire_for(std::chrono::milliseconds(200))) << "once will do";
  come_and_go(600);
  EXPECT_TRUE(given_back_.try_acquire_for(std::chrono::minutes(1))) << "after each rush";
}

// Answers whatever comes with much, and waits for nothing more.
class MuchToSay final : public PlainSession {
 public:
  static constexpr size_t kBytes = 4'000'000;

  explicit MuchToSay(std::atomic<bool>* refused) : refused_(refused) {}

  void Receive(std::string_view /*bytes*/) override { output_.assign(kBytes, 'x'); }

  void Refuse(const Status& /*why*/) override {
    *refused_ = true;
    output_.clear();
  }

  bool wants_input() const override { return output_.empty(); }

  bool finished() const override { return false; }

  Phase phase() const override { return Phase::kIdle; }

 private:
  std::atomic<bool>* const refused_;
};

TEST_F(ServerTest, P10AClientThatDoesNotReadIsDroppedWhenAllTogetherHaveTooMuch) {
  std::atomic<bool> refused{false};
  options_.held_bytes_max = 300'000;
  new_session_ = [&refused] { return std::make_unique<MuchToSay>(&refused); };
  Start();
  SocketClient client(path_);
  client.Send("?");
  EXPECT_LT(client.ReadUntil("?").size(), MuchToSay::kBytes) << "until it was closed";
  EXPECT_FALSE(refused) << "it has no request that could be";
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(figures_->crowded_out, 1U);
}

TEST_F(ServerTest, P10ARequestThatWaitsForACommitIsToldThatAllTogetherHaveTooMuch) {
  options_.held_bytes_max = 10'000;
  options_.uncommitted_bytes_max = 0;
  store_.gated = true;
  Start();
  SocketClient first(path_);
  first.Send(kEnqueue);
  PassATurn();
  SocketClient large(path_);
  large.Send(
      "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
      "Content-Length: 20000\r\n\r\n" +
      std::string(19'998, ' ') + "{}");
  EXPECT_THAT(large.ReadAll(), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("too_much_at_once")));
  store_.gate.set_value();
  EXPECT_THAT(first.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 201"));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerTest, ConnectionsThatCannotBeAcceptedAreCounted) {
  server_clock_ = &hand_clock_;
  Start();
  PassATurn();
  ConnectInVain();
  EXPECT_TRUE(Stop().ok());
  EXPECT_GE(figures_->accept_failures, 1U);
}

}  // namespace
}  // namespace delayd
