// How much of what clients ask for one turn does (docs/decisions/0083).
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/daemon/server_fixture.h"

namespace delayd {
namespace {

// Each byte is a request for a job, and is taken only when the one before it is answered.
class OneAtATime : public PlainSession {
 public:
  void Receive(std::string_view bytes) override { waiting_ += bytes.size(); }

  std::optional<SessionRequest> Next(const Now& /*now*/) override {
    if (busy_ || waiting_ == 0) {
      return std::nullopt;
    }
    --waiting_;
    busy_ = true;
    return SessionRequest{.command = engine::Lease{}};
  }

  void Answer(uint64_t /*tag*/, const engine::Reply& /*reply*/) override {
    busy_ = false;
    output_.push_back('.');
  }

  bool has_more() const override { return !busy_ && waiting_ > 0; }

  bool held_up() const override { return busy_ && waiting_ > 0; }

  bool finished() const override { return stopped_ && !busy_ && waiting_ == 0; }

 protected:
  bool busy_ = false;

 private:
  size_t waiting_ = 0;
};

TEST_F(ServerTest, RequestsThatAnAnswerHoldsUpDoNotTakeATurnEach) {
  new_session_ = [] { return std::make_unique<OneAtATime>(); };
  engine_.job_ready = true;
  Start();
  SocketClient client(path_);
  const size_t requests = 64;
  client.Send(std::string(requests, 'x'));
  client.ReadUntil(std::string(requests, '.'));
  EXPECT_TRUE(Stop().ok());
  ASSERT_EQ(engine_.asked.size(), requests);
  // Where the server is not run for a while, they need some more than eight.
  EXPECT_LT(engine_.asked.back().turn - engine_.asked.front().turn, requests / 2);
}

TEST_F(ServerTest, OneClientsSlowRequestsTakeMoreThanOneTurn) {
  new_session_ = [] { return std::make_unique<OneAtATime>(); };
  engine_.job_ready = true;
  engine_.on_execute = [] { Busy(std::chrono::milliseconds(6)); };
  Start();
  SocketClient client(path_);
  const size_t requests = 7;
  client.Send(std::string(requests, 'x'));
  client.ReadUntil(std::string(requests, '.'));
  EXPECT_TRUE(Stop().ok());
  ASSERT_EQ(engine_.asked.size(), requests);
  for (size_t i = 2; i < requests; ++i) {
    EXPECT_LT(engine_.asked[i - 2].turn, engine_.asked[i].turn);
  }
}

// Asks all at once; each answer takes longer than all clients have in a turn.
class SlowToAnswer final : public OneAtATime {
 public:
  explicit SlowToAnswer(const std::atomic<bool>* slow) : slow_(slow) {}

  std::optional<SessionRequest> Next(const Now& now) override {
    busy_ = false;
    return OneAtATime::Next(now);
  }

  void Answer(uint64_t tag, const engine::Reply& reply) override {
    Busy(std::chrono::milliseconds(*slow_ ? 260 : 0));
    OneAtATime::Answer(tag, reply);
  }

 private:
  const std::atomic<bool>* const slow_;
};

TEST_F(ServerTest, WritingAnswersTakesOfTheTimeThatClientsHaveInATurn) {
  engine_.job_ready = true;
  std::atomic<bool> slow = false;
  new_session_ = [&slow] { return std::make_unique<SlowToAnswer>(&slow); };
  Start();
  SocketClient first(path_);
  SocketClient second(path_);
  second.Send("?");
  second.ReadUntil(".");
  engine_.on_execute = [this, &second] {
    second.Send("?");  // is read while the first is served
    engine_.on_execute = {};
  };
  slow = true;
  first.Send("?");
  first.ReadUntil(".");
  second.ReadUntil("..");
  EXPECT_TRUE(Stop().ok());
  ASSERT_EQ(engine_.asked.size(), 3U);
  EXPECT_LT(engine_.asked[1].turn, engine_.asked[2].turn);
}

TEST_F(ServerTest, WritingALargeAnswerTakesOfTheTimeForTheNextRequestOfItsClient) {
  engine_.job_ready = true;
  engine_.on_execute = [] { Busy(std::chrono::milliseconds(20)); };
  const std::atomic<bool> slow = true;
  new_session_ = [&slow] { return std::make_unique<SlowToAnswer>(&slow); };
  Start();
  SocketClient client(path_);
  client.Send("??");
  client.ReadUntil("..");
  EXPECT_TRUE(Stop().ok());
  ASSERT_EQ(engine_.asked.size(), 2U);
  EXPECT_LT(engine_.asked[0].turn, engine_.asked[1].turn);
}

// As TLS does with a handshake, only longer.
class SlowToRead final : public OneAtATime {
 public:
  explicit SlowToRead(std::function<void()> on_receive) : on_receive_(std::move(on_receive)) {}

  void Receive(std::string_view bytes) override {
    on_receive_();
    OneAtATime::Receive(bytes);
  }

 private:
  const std::function<void()> on_receive_;
};

// The first that it receives is the handshake. Tells of all that it receives.
class Greeting final : public OneAtATime {
 public:
  explicit Greeting(std::function<void(bool greets)> on_receive)
      : on_receive_(std::move(on_receive)) {}

  void Receive(std::string_view bytes) override {
    on_receive_(std::exchange(greets_, false));
    OneAtATime::Receive(bytes);
  }

  bool greets() const override { return greets_; }

 private:
  const std::function<void(bool greets)> on_receive_;
  bool greets_ = true;
};

TEST_F(ServerTest, HandshakesDoNotHoldUpOthers) {
  engine_.job_ready = true;
  std::string received;
  std::vector<int> turns;  // in which a client was greeted
  new_session_ = [&] {
    return std::make_unique<Greeting>([&](bool greets) {
      received += greets ? 'g' : '.';
      if (greets) {
        turns.push_back(engine_.turns);
        Busy(std::chrono::milliseconds(25));
      }
    });
  };
  Start();
  SocketClient other(path_);
  other.Send("?");
  other.ReadUntil(".");
  std::vector<std::unique_ptr<SocketClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<SocketClient>(path_));
  }
  engine_.on_execute = [&] {
    for (const auto& client : clients) {
      client->Send("?");
    }
    other.Send("?");
    engine_.on_execute = {};
  };
  other.Send("?");
  other.ReadUntil("...");
  for (const auto& client : clients) {
    client->ReadUntil(".");
  }
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(received.size(), 7U);
  // Where the server is not run for a while before it reads the other client, one or two come
  // first.
  EXPECT_NE(received.back(), '.') << received;
  for (size_t i = 1; i < turns.size(); ++i) {
    EXPECT_LT(turns[i - 1], turns[i]);
  }
}

TEST_F(ServerTest, ReadingTakesOfTheTimeThatClientsHaveInATurn) {
  engine_.job_ready = true;
  std::atomic<bool> slow = false;
  std::vector<int> turns;  // in which a client was read
  new_session_ = [&] {
    return std::make_unique<SlowToRead>([&] {
      if (slow) {
        turns.push_back(engine_.turns);
        Busy(std::chrono::milliseconds(260));
      }
    });
  };
  Start();
  std::vector<std::unique_ptr<SocketClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<SocketClient>(path_));
    clients.back()->Send("?");
    clients.back()->ReadUntil(".");
  }
  engine_.on_execute = [&] {
    slow = true;
    clients[1]->Send("?");
    clients[2]->Send("?");
    engine_.on_execute = {};
  };
  clients[0]->Send("?");
  for (const auto& client : clients) {
    client->ReadUntil("..");
  }
  EXPECT_TRUE(Stop().ok());
  ASSERT_EQ(turns.size(), 2U);
  EXPECT_LT(turns[0], turns[1]);
}

}  // namespace
}  // namespace delayd
