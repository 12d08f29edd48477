// What a client that goes has held.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/limits.h"
#include "daemon/server.h"
#include "storage/memory_job_store.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/server_fixture.h"
#include "tests/unit/daemon/socket_client.h"

namespace delayd {
namespace {

// Each byte asks for the state of affairs. Who goes gives jobs back.
class Holder final : public Session {
 public:
  explicit Holder(std::function<void()> on_leave, size_t held = 1)
      : on_leave_(std::move(on_leave)), held_(held) {}

  void Receive(std::string_view bytes) override { asked_ += bytes.size(); }

  std::optional<SessionRequest> Next(const Now& /*now*/) override {
    return asked_ == 0 ? std::nullopt
                       : (--asked_, std::optional(SessionRequest{.command = engine::GetStats{}}));
  }

  void Answer(uint64_t /*tag*/, const engine::Reply& /*reply*/) override { output_.push_back('.'); }

  void Stop() override { stopped_ = true; }

  std::vector<LeaseToken> Leave() override {
    if (!on_leave_) {
      return {};
    }
    std::exchange(on_leave_, nullptr)();
    return std::vector<LeaseToken>(held_);
  }

  void Refuse(const Status& /*why*/) override {}

  bool wants_input() const override { return true; }

  std::string_view output() const override { return output_; }

  void Sent(size_t bytes) override { output_.erase(0, bytes); }

  bool finished() const override { return stopped_; }

  Phase phase() const override { return Phase::kWorking; }

 private:
  std::function<void()> on_leave_;
  size_t held_;
  size_t asked_ = 0;
  bool stopped_ = false;
  std::string output_;
};

TEST(ServerLeaveTest, AJobOfAClientThatWentIsBackBeforeWhoSawItGoIsServed) {
  const test::TempDir directory;
  const std::string path = directory.Sub("d.sock");
  FakeEngine engine;
  storage::MemoryJobStore store;
  const SystemClock clock;
  std::unique_ptr<SocketClient> other;
  int sessions = 0;
  std::promise<void> listening;
  std::thread thread([&] {
    Server server({}, &engine, &store, &clock);
    StatusOr<Listener> listener = Listener::OpenUnix(path);
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    server.Listen(
        std::move(listener).value(),
        [&] {
          // The first one's end is what the second has waited for.
          return std::make_unique<Holder>(
              sessions++ == 0 ? std::function<void()>([&] { other->Send("?"); }) : nullptr);
        },
        "no room");
    listening.set_value();
    EXPECT_TRUE(server.Run().ok());
  });
  listening.get_future().wait();
  SocketClient client(path);
  client.Send("?");
  EXPECT_EQ(client.ReadUntil("."), ".");
  other = std::make_unique<SocketClient>(path);
  other->Send("?");
  EXPECT_EQ(other->ReadUntil("."), ".");
  client.Close();
  EXPECT_EQ(other->ReadUntil(".."), "..");
  ::kill(::getpid(), SIGTERM);
  thread.join();
  const auto given_back = std::ranges::find_if(engine.asked, [](const FakeEngine::Asked& asked) {
    return std::holds_alternative<engine::GiveBack>(asked.command);
  });
  EXPECT_EQ(given_back - engine.asked.begin(), 2);
  ASSERT_EQ(engine.asked.size(), 4U);
}

// As with TLS: each byte asks for a job, but for the last, which says that none follows. The socket
// stays open.
class SaysGoodbye final : public Session {
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

  void Stop() override { stopped_ = true; }

  bool input_ended() const override { return said_goodbye_; }

  void Refuse(const Status& /*why*/) override {}

  bool wants_input() const override { return true; }

  std::string_view output() const override { return output_; }

  void Sent(size_t bytes) override { output_.erase(0, bytes); }

  bool finished() const override { return stopped_ && answered_ == waiting_; }

  Phase phase() const override { return Phase::kWorking; }

 private:
  size_t waiting_ = 0;
  size_t asked_ = 0;
  size_t answered_ = 0;
  bool said_goodbye_ = false;
  bool stopped_ = false;
  std::string output_;
};

class ServerGoodbyeTest : public ServerTest {};

TEST_F(ServerGoodbyeTest, WhoSaysThatNothingFollowsWaitsForNoJobAnyMore) {
  new_session_ = [] { return std::make_unique<SaysGoodbye>(); };
  Start();
  SocketClient client(path_);
  client.Send("??");
  client.Send(".");
  EXPECT_EQ(client.ReadAll(), "00");
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(engine_.abandoned.size(), 2U);
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
  engine_.on_execute = [] {
    const auto slow = std::chrono::steady_clock::now() + Millis(limits::kOwnWorkMs);
    while (std::chrono::steady_clock::now() < slow) {
    }
  };
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
