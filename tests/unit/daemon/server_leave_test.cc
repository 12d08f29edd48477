// What becomes of the jobs that a client holds, and of those it waits for, when it goes.
#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/limits.h"
#include "daemon/beanstalk/session.h"
#include "tests/unit/daemon/server_fixture.h"

namespace delayd {
namespace {

// Each byte asks for the state of affairs. Who goes gives jobs back.
class Holder final : public PlainSession {
 public:
  explicit Holder(std::function<void()> on_leave, size_t held = 1)
      : on_leave_(std::move(on_leave)), held_(held) {}

  void Receive(std::string_view bytes) override { asked_ += bytes.size(); }

  std::optional<SessionRequest> Next(const Now& /*now*/) override {
    return asked_ == 0 ? std::nullopt
                       : (--asked_, std::optional(SessionRequest{.command = engine::GetStats{}}));
  }

  void Answer(uint64_t /*tag*/, const engine::Reply& /*reply*/) override { output_.push_back('.'); }

  std::vector<LeaseToken> Leave() override {
    if (!on_leave_) {
      return {};
    }
    std::exchange(on_leave_, nullptr)();
    return std::vector<LeaseToken>(held_);
  }

 private:
  std::function<void()> on_leave_;
  size_t held_;
  size_t asked_ = 0;
};

TEST_F(ServerTest, AJobOfAClientThatWentIsBackBeforeWhoSawItGoIsServed) {
  std::unique_ptr<SocketClient> other;
  bool is_first = true;
  new_session_ = [&] {
    // The first one's end is what the second has waited for.
    return std::make_unique<Holder>(std::exchange(is_first, false)
                                        ? std::function<void()>([&] { other->Send("?"); })
                                        : nullptr);
  };
  Start();
  SocketClient client(path_);
  client.Send("?");
  EXPECT_EQ(client.ReadUntil("."), ".");
  other = std::make_unique<SocketClient>(path_);
  other->Send("?");
  EXPECT_EQ(other->ReadUntil("."), ".");
  client.Close();
  EXPECT_EQ(other->ReadUntil(".."), "..");
  EXPECT_TRUE(Stop().ok());
  const auto given_back = std::ranges::find_if(engine_.asked, [](const FakeEngine::Asked& asked) {
    return std::holds_alternative<engine::GiveBack>(asked.command);
  });
  EXPECT_EQ(given_back - engine_.asked.begin(), 2);
  ASSERT_EQ(engine_.asked.size(), 4U);
}

// Whoever waits for the job would else wait until the server looks at the clock.
TEST_F(ServerTest, AJobOfAClientThatWentIsBackThoughNothingElseWakesTheServer) {
  server_clock_ = &hand_clock_;
  new_session_ = [] { return std::make_unique<Holder>([] {}); };
  std::promise<void> given_back;
  engine_.on_execute = [&] {
    if (std::holds_alternative<engine::GiveBack>(engine_.asked.back().command)) {
      given_back.set_value();
    }
  };
  Start();
  SocketClient client(path_);
  client.Send("?");
  EXPECT_EQ(client.ReadUntil("."), ".");
  client.Close();
  given_back.get_future().wait();
  EXPECT_TRUE(Stop().ok());
}

// As with TLS: each byte asks for a job, but for the last, which says that none follows. The socket
// stays open.
class SaysGoodbye final : public PlainSession {
 public:
  void Receive(std::string_view bytes) override {
    waiting_ += bytes.size();
    said_goodbye_ = bytes.ends_with('.');
    waiting_ -= said_goodbye_ ? 1 : 0;
  }

  std::optional<SessionRequest> Next(const Now& /*now*/) override {
    if (asked_ == waiting_) {
      return std::nullopt;
    }
    return SessionRequest{.tag = ++asked_, .command = engine::Lease{.wait = Millis(30'000)}};
  }

  void Answer(uint64_t /*tag*/, const engine::Reply& /*reply*/) override {
    output_.push_back('0');
    ++answered_;
  }

  bool input_ended() const override { return said_goodbye_; }

  bool finished() const override { return stopped_ && answered_ == waiting_; }

 private:
  size_t waiting_ = 0;
  size_t asked_ = 0;
  size_t answered_ = 0;
  bool said_goodbye_ = false;
};

TEST_F(ServerTest, WhoSaysThatNothingFollowsWaitsForNoJobAnyMore) {
  new_session_ = [] { return std::make_unique<SaysGoodbye>(); };
  Start();
  SocketClient client(path_);
  client.Send("??");
  client.Send(".");
  EXPECT_EQ(client.ReadAll(), "00");
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(engine_.abandoned.size(), 2U);
}

class ServerWentTest : public ServerTest {
 protected:
  // Of the last request of this kind.
  template <typename Command>
  int TurnOf() const {
    int turn = -1;
    for (const FakeEngine::Asked& asked : engine_.asked) {
      turn = std::holds_alternative<Command>(asked.command) ? asked.turn : turn;
    }
    return turn;
  }

  // The client sends a thousand requests and more, and closes when so many are done.
  void CloseAfter(int done) {
    std::promise<void> reached;
    std::promise<void> closed;
    std::promise<void> enqueued;
    engine_.on_execute = [&, left = done]() mutable {
      if (--left == 0) {
        reached.set_value();
        closed.get_future().wait();
      }
      if (std::holds_alternative<engine::Enqueue>(engine_.asked.back().command)) {
        enqueued.set_value();
      }
    };
    Start();
    SocketClient client(path_);
    std::string requests;
    for (int i = 0; i < 1000; ++i) {
      requests += kStats;
    }
    client.Send(requests + kLease + kEnqueue);
    reached.get_future().wait();
    client.Close();
    closed.set_value();
    EXPECT_EQ(enqueued.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
    EXPECT_TRUE(Stop().ok());
    EXPECT_EQ(TurnOf<engine::Abandon>(), TurnOf<engine::Lease>());
  }
};

// Others took all the time that clients have in a turn.
TEST_F(ServerWentTest, P3AClientThatWentGetsNoJobThoughThereIsNoTimeToServeIt) {
  Start();
  SocketClient worker(path_);
  worker.Send(kLease);
  PassATurn();
  engine_.on_execute = [&] {
    worker.Close();
    Busy(std::chrono::milliseconds(260));
    engine_.on_execute = {};
  };
  PassATurn();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(TurnOf<engine::Abandon>(), TurnOf<engine::GetStats>())
      << "before what is due is handed out";
}

// It has sent more than a turn takes of one client.
TEST_F(ServerWentTest, P3AClientThatWentGetsNoJobThoughItSentMoreThanIsTaken) {
  std::promise<void> closed;
  std::promise<void> abandoned;
  engine_.on_execute = [&, is_first = true]() mutable {
    if (std::exchange(is_first, false)) {
      closed.get_future().wait();
    }
    Busy(std::chrono::milliseconds(6));
    if (std::holds_alternative<engine::Abandon>(engine_.asked.back().command)) {
      abandoned.set_value();
    }
  };
  store_.gated = true;  // who has answers to write learns that nobody reads them
  Start();
  SocketClient client(path_);
  client.Send(kEnqueue + kEnqueue + kEnqueue + kLease + kEnqueue + kEnqueue);
  client.Close();
  closed.set_value();
  abandoned.get_future().wait();
  store_.gate.set_value();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(TurnOf<engine::Abandon>(), TurnOf<engine::Lease>())
      << "before what is due is handed out";
}

// The first answers find nobody; what it wanted to have done stands behind them.
TEST_F(ServerWentTest, WhatAClientSentBeforeItWentIsRunToTheEnd) {
  CloseAfter(1);
}

// It has read none of the answers that a turn before has sent: its end is a reset.
TEST_F(ServerWentTest, WhatAClientSentBeforeAResetIsRunToTheEnd) {
  CloseAfter(300);
}

// It waited for a job, and had sent more than is read meanwhile.
TEST_F(ServerWentTest, WhatAClientSentBehindAWaitIsRunToTheEnd) {
  beanstalk::Hub hub({});
  new_session_ = [&hub] { return std::make_unique<beanstalk::BeanstalkSession>(&hub); };
  std::promise<void> asked;
  engine_.on_execute = [&] {
    if (std::holds_alternative<engine::GetStats>(engine_.asked.back().command)) {
      asked.set_value();
    }
  };
  Start();
  SocketClient client(path_);
  std::string commands = "reserve\r\n";
  while (commands.size() < 3 * beanstalk::BeanstalkSession::kWaitingInputMax) {
    commands += "use t\r\n";
  }
  client.Send(commands + "stats\r\n");
  client.Close();
  EXPECT_EQ(asked.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(Stop().ok());
}

// Its end is read in the next turn only.
TEST_F(ServerWentTest, P3AClientThatClosedRightBehindItsRequestGetsNoJob) {
  std::promise<void> closed;
  std::promise<void> abandoned;
  engine_.on_execute = [&] {
    if (std::holds_alternative<engine::GetStats>(engine_.asked.back().command)) {
      closed.get_future().wait();
    }
    if (std::holds_alternative<engine::Abandon>(engine_.asked.back().command)) {
      abandoned.set_value();
    }
  };
  Start();
  SocketClient client(path_);
  client.Send(kStats + kLease);
  client.Close();
  closed.set_value();
  abandoned.get_future().wait();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(TurnOf<engine::Abandon>(), TurnOf<engine::Lease>())
      << "before what is due is handed out";
}

// The answer with the job stands behind that of a request which still waits.
TEST_F(ServerWentTest, P3AJobThatAClientWasNotToldOfIsGivenBack) {
  std::promise<void> given_back;
  engine_.on_execute = [&] {
    engine_.job_ready = true;
    if (std::holds_alternative<engine::GiveBack>(engine_.asked.back().command)) {
      given_back.set_value();
    }
  };
  Start();
  SocketClient client(path_);
  client.Send(kLease + kLease);
  PassATurn();
  client.Close();
  EXPECT_EQ(given_back.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(Stop().ok());
}

class ServerGiveBackTest : public ServerTest {
 protected:
  // A client that holds so many jobs comes and goes.
  void LeaveWith(size_t held) {
    new_session_ = [held] { return std::make_unique<Holder>([] {}, held); };
    Start();
    SocketClient client(path_);
    client.Send("?");
    EXPECT_EQ(client.ReadUntil("."), ".");
    client.Close();
    EXPECT_TRUE(Stop().ok());
  }
};

// They were as many as a turn gives back, and all that 16 MiB have room for were written before the
// next client's change.
TEST_F(ServerGiveBackTest, P10JobsOfAClientThatWentComeBackNoFasterThanTheyAreWritten) {
  static constexpr size_t kHeld = 50;
  engine_.own_work_max = 10;
  LeaveWith(kHeld);
  size_t given_back = 0;
  for (const size_t size : engine_.batch_sizes) {
    EXPECT_LE(size, engine_.own_work_max);
    given_back += size;
  }
  EXPECT_EQ(given_back, kHeld);
}

// Each that comes back reads its record.
TEST_F(ServerGiveBackTest, P10JobsOfAClientThatWentKeepNobodyWaitingForLong) {
  static constexpr size_t kHeld = 3;
  engine_.on_execute = [] { Busy(Millis(limits::kOwnWorkMs)); };
  LeaveWith(kHeld);
  std::set<int> turns;
  for (const FakeEngine::Asked& asked : engine_.asked) {
    if (std::holds_alternative<engine::GiveBack>(asked.command)) {
      EXPECT_TRUE(turns.insert(asked.turn).second) << "two in one turn";
    }
  }
  EXPECT_EQ(turns.size(), kHeld);
}

}  // namespace
}  // namespace delayd
