#include "daemon/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/http/http_session.h"
#include "tests/unit/daemon/server_fixture.h"

#include <sys/wait.h>

namespace delayd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(ServerTest, AClientThatEndsWhileItsAnswerIsOnTheWayIsLetGo) {
  std::atomic<SocketClient*> ending = nullptr;
  engine_.on_committed = [&ending] { ending.load()->EndSending(); };
  store_.gated = true;
  Start();
  SocketClient other(path_);
  SocketClient client(path_);
  ending = &client;
  client.Send(kEnqueue);
  PassATurn();  // it is waited for again
  store_.gate.set_value();
  EXPECT_THAT(client.ReadAll(), HasSubstr("Delayd-Commit: 1"));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerTest, ClockIsReadAfterTheRequestHasArrived) {
  Start();
  PassATurn();  // the server now sleeps
  const Now before = clock_.Sample();
  SocketClient client(path_);
  client.Send(kEnqueue);
  EXPECT_THAT(client.ReadUntil("\"id\""), HasSubstr("201"));
  EXPECT_TRUE(Stop().ok());
  for (const FakeEngine::Asked& asked : engine_.asked) {
    if (std::holds_alternative<engine::Enqueue>(asked.command)) {
      EXPECT_GE(asked.now.boot, before.boot);
    }
  }
}

// It was dead, perhaps, and is pending since then.
TEST_F(ServerTest, WhatFallsDueWhileARequestIsServedFiresInTheSameTurn) {
  engine_.on_execute = [this] {
    while (clock_.Sample().boot == engine_.asked.back().now.boot) {
    }
  };
  Start();
  SocketClient client(path_);
  client.Send(kStats);
  client.ReadUntil("commit_sequence");
  EXPECT_TRUE(Stop().ok());
  ASSERT_EQ(engine_.asked.size(), 1U);
  const FakeEngine::Asked& asked = engine_.asked[0];
  EXPECT_GT(engine_.advanced.at(static_cast<size_t>(asked.turn)).boot, asked.now.boot);
}

TEST_F(ServerTest, AJobThatIsAwaitedAndFarHoldsUpNobody) {
  engine_.is_awaited = true;
  engine_.until_next_event = std::chrono::hours(1);
  Start();
  SocketClient client(path_);
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) {
    client.Send(kEnqueue);
    const std::string commit = "Delayd-Commit: " + std::to_string(sequence);
    EXPECT_THAT(client.ReadUntil(commit), HasSubstr(commit));
  }
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerTest, AJobThatIsAwaitedAndSoonDueIsNotSleptOver) {
  engine_.is_awaited = true;
  engine_.until_next_event = Micros(20);
  Start();
  PassATurn();
  const int before = engine_.turns;
  while (engine_.turns < before + 100) {  // nothing else ends the waits
    std::this_thread::yield();
  }
  PassATurn();
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerTest, FatalEngineEndsTheServer) {
  engine_.on_execute = [this] { engine_.fatal_status = DataLoss("job 1: damaged"); };
  Start();
  SocketClient client(path_);
  client.Send(kLease);
  EXPECT_THAT(client.ReadAll(), HasSubstr("503"));
  thread_.join();
  EXPECT_EQ(result_.code(), StatusCode::kDataLoss);
}

TEST_F(ServerTest, WaitingLeaseOfAClientThatWentIsAbandoned) {
  std::promise<void> abandoned;
  engine_.on_execute = [this, &abandoned] {
    if (!engine_.abandoned.empty()) {
      abandoned.set_value();
      engine_.on_execute = {};
    }
  };
  Start();
  SocketClient client(path_);
  client.Send(kLease);
  PassATurn();
  client.Close();
  abandoned.get_future().wait();
  EXPECT_TRUE(Stop().ok());
  ASSERT_EQ(engine_.abandoned.size(), 1U);
  EXPECT_TRUE(
      std::holds_alternative<engine::Lease>(engine_.asked.at(engine_.abandoned[0] - 1).command));
}

// One whose requests fill the session is not read.
TEST_F(ServerTest, AClientThatWentIsNoticedAlsoWhenNothingOfItIsRead) {
  std::atomic<size_t> left = http::HttpSession::kWaitingLeasesMax;
  std::promise<void> abandoned;
  engine_.on_execute = [&] {
    if (std::holds_alternative<engine::Abandon>(engine_.asked.back().command) && --left == 0) {
      abandoned.set_value();
    }
  };
  Start();
  SocketClient client(path_);
  for (size_t i = 0; i < http::HttpSession::kWaitingLeasesMax; ++i) {
    client.Send(kLease);
  }
  client.Send(std::string(2 * http::HttpSession::kWaitingInputMax, 'x'));
  PassATurn();
  client.Close();
  EXPECT_EQ(abandoned.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(ServerTest, ClientThatOnlyEndedSendingIsStillAnswered) {
  Start();
  SocketClient client(path_);
  client.Send(kEnqueue + kLease);
  client.EndSending();
  const std::string output = client.ReadAll();
  EXPECT_THAT(output, HasSubstr("201 Created"));
  EXPECT_THAT(output, HasSubstr(R"({"jobs":[]})"));
}

TEST_F(ServerTest, ClientThatOnlyEndedSendingGetsTheJobThatIsThere) {
  engine_.job_ready = true;
  Start();
  SocketClient client(path_);
  client.Send(kLease);
  client.EndSending();
  EXPECT_THAT(client.ReadAll(), HasSubstr("\"id\":7"));
  EXPECT_TRUE(Stop().ok());
  EXPECT_TRUE(engine_.abandoned.empty());
}

// As a client of TCP that closes looks: none of its leases may be given a job later.
TEST_F(ServerTest, ClientThatOnlyEndedSendingIsAnsweredHoweverManyOfItsLeasesWait) {
  Start();
  SocketClient client(path_);
  for (size_t i = 0; i < http::HttpSession::kWaitingLeasesMax; ++i) {
    client.Send(kLease);
  }
  client.Send(kLease + kEnqueue);
  PassATurn();
  client.EndSending();
  const std::string output = client.ReadAll();
  EXPECT_THAT(output, HasSubstr(R"({"jobs":[]})"));
  EXPECT_THAT(output, HasSubstr("201 Created"));
}

TEST_F(ServerTest, RequestOfAClientThatDoesNotWaitForTheAnswerIsExecuted) {
  std::promise<void> executed;
  engine_.on_execute = [this, &executed] {
    executed.set_value();
    engine_.on_execute = {};
  };
  Start();
  SocketClient client(path_);
  client.Send(kEnqueue);
  client.Close();
  executed.get_future().wait();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(engine_.sealed, 1U);
}

TEST_F(ServerTest, StopAnswersWaitingLeasesWithNothingAndCommitsTheRest) {
  store_.gated = true;
  Start();
  SocketClient writer(path_);
  writer.Send(kEnqueue);
  SocketClient worker(path_);
  worker.Send(kLease);
  PassATurn();
  ::kill(::getpid(), SIGTERM);
  EXPECT_THAT(worker.ReadAll(),
              ::testing::AllOf(HasSubstr("Connection: close"), HasSubstr(R"({"jobs":[]})")));
  store_.gate.set_value();
  EXPECT_THAT(writer.ReadAll(), HasSubstr("201 Created"));
  thread_.join();
  EXPECT_TRUE(result_.ok());
  EXPECT_FALSE(SocketClient(path_).connected());
}

// A hundred thousand leases that end, say: each commit is followed by another.
TEST_F(ServerTest, AStopDoesNotWaitForWorkThatGoesOnAndOn) {
  options_.stop_grace = Millis(50);
  store_.takes = Micros(5000);              // so that the core thread leaves it to the other one
  constexpr uint64_t kCommitsMax = 10'000;  // of a minute, at least
  engine_.on_committed = [&] {
    if (engine_.sealed < kCommitsMax) {
      engine_.Execute(0, engine::Enqueue{}, clock_.Sample());
    }
  };
  Start();
  SocketClient client(path_);
  client.Send(kEnqueue);
  client.ReadUntil("201 Created");
  EXPECT_TRUE(Stop().ok());
  EXPECT_LT(engine_.sealed, kCommitsMax);
}

TEST_F(ServerTest, AStopDoesNotAnswerTheLeaseOfOneJobAsIfItHadBeenHandedOut) {
  Start();
  SocketClient worker(path_);
  worker.Send("POST /v1/jobs/7/lease HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n");
  PassATurn();
  ::kill(::getpid(), SIGTERM);
  EXPECT_THAT(worker.ReadAll(), ::testing::AllOf(HasSubstr("503"), HasSubstr("being stopped")));
  thread_.join();
  EXPECT_EQ(engine_.abandoned.size(), 1U);
}

// Between "ready" and the first turn too: the signal must not end the process as it would by
// itself.
TEST_F(ServerTest, SignalBeforeTheFirstTurnIsAStopInOrder) {
  Server server(options_, &engine_, &store_, &clock_);
  ::raise(SIGTERM);
  EXPECT_TRUE(server.Run().ok());
}

TEST_F(ServerTest, RequestsAboveTheBoundWaitForACommitAndAreAllAnswered) {
  options_.uncommitted_bytes_max = 3;  // of the fake engine: three changes
  store_.gated = true;
  Start();
  SocketClient client(path_);
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    bytes += kEnqueue;
  }
  client.Send(bytes + "GET /v1/stats HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n");
  store_.gate.set_value();
  const std::string output = client.ReadAll();
  EXPECT_EQ(Count(output, "201 Created"), 50U);
  EXPECT_THAT(output, HasSubstr("commit_sequence"));
  EXPECT_TRUE(Stop().ok());
  for (const size_t size : engine_.batch_sizes) {
    EXPECT_LE(size, 4U);
  }
}

TEST_F(ServerTest, AdminCommandHoldsUpNobodyAndTheNextIsRefusedMeanwhile) {
  std::promise<void> begun;
  std::promise<void> finish;
  options_.admin = [&](const AdminCommand&, const std::atomic<bool>&) -> AdminAnswer {
    begun.set_value();
    finish.get_future().wait();
    return AdminResult(protocol::VerifyResult{.rows = 4711});
  };
  Start();
  SocketClient admin(path_);
  admin.Send(kVerify);
  begun.get_future().wait();
  SocketClient other(path_);
  other.Send(kEnqueue + kStats);
  EXPECT_THAT(other.ReadUntil("commit_sequence"), HasSubstr("201 Created"));
  other.Send(kVerify);
  EXPECT_THAT(other.ReadUntil("admin_busy"), HasSubstr("409 Conflict"));
  finish.set_value();
  EXPECT_THAT(admin.ReadUntil("4711"), HasSubstr("200 OK"));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerTest, AStopIsNotHeldUpByAnAdminCommandThatListens) {
  std::promise<void> begun;
  options_.admin = [&](const AdminCommand&, const std::atomic<bool>& stop) -> AdminAnswer {
    begun.set_value();
    while (!stop) {
      std::this_thread::yield();
    }
    return Unavailable("stopped");
  };
  Start();
  SocketClient admin(path_);
  admin.Send(kVerify);
  begun.get_future().wait();
  ::kill(::getpid(), SIGTERM);
  EXPECT_THAT(admin.ReadAll(), HasSubstr("503 Service Unavailable"));
  thread_.join();
  EXPECT_TRUE(result_.ok());
}

TEST_F(ServerTest, AnEndThatIsNoStopIsNotHeldUpByAnAdminCommandEither) {
  std::promise<void> begun;
  options_.admin = [&](const AdminCommand&, const std::atomic<bool>& stop) -> AdminAnswer {
    begun.set_value();
    while (!stop) {
      std::this_thread::yield();
    }
    return Unavailable("stopped");
  };
  engine_.on_execute = [this] { engine_.fatal_status = Internal("a commit failed"); };
  Start();
  SocketClient admin(path_);
  admin.Send(kVerify);
  begun.get_future().wait();
  SocketClient other(path_);
  other.Send(kStats);
  thread_.join();
  EXPECT_EQ(result_.code(), StatusCode::kInternal);
}

// The store is still to be closed then, which takes as long as its disk.
TEST_F(ServerTest, ASignalBehindItsEndEndsTheProcessWithAnExitCode) {
  const auto end_twice = [this] {
    Start();
    if (!Stop().ok()) {
      ::_exit(0);
    }
    while (true) {
      ::kill(::getpid(), SIGTERM);  // those of the first second are the same request
    }
  };
  EXPECT_EXIT(end_twice(), ::testing::ExitedWithCode(1), "");
}

TEST_F(ServerTest, ASecondSignalEndsOneThatCannotTurn) {
  const auto end_twice = [this] {
    options_.stopping = [] {
      while (true) {
        ::kill(::getpid(), SIGTERM);
      }
    };
    Start();
    static_cast<void>(Stop());
  };
  EXPECT_EXIT(end_twice(), ::testing::ExitedWithCode(1), "");
}

// Also one that comes while the first is being taken.
TEST_F(ServerTest, NoneOfManySignalsKillsTheProcess) {
  const auto send_many = [this] {
    std::atomic<bool> ended = false;
    options_.stopping = [&ended] { ended = true; };
    Start();
    while (!ended) {
      ::kill(::getpid(), SIGTERM);
    }
    thread_.join();
    ::_exit(result_.ok() ? 0 : 2);
  };
  // Where the machine stood still for a second, the next signal is a second request.
  const auto by_itself = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) <= 1; };
  for (int i = 0; i < 50; ++i) {  // the moment at which one could was hit once in 25 times
    ASSERT_EXIT(send_many(), by_itself, "");
  }
}

// As from a terminal and from a wrapper at the same time.
TEST_F(ServerTest, SignalsThatComeTogetherAreOneStopInOrder) {
  const auto end_twice = [this] {
    options_.turn_begins = [count = 0](const Now&) mutable {
      if (++count == 2) {
        ::raise(SIGINT);
        ::raise(SIGTERM);
      }
    };
    Start();
    SocketClient(path_).Send(kStats);
    thread_.join();
    ::_exit(result_.ok() ? 0 : 2);
  };
  EXPECT_EXIT(end_twice(), ::testing::ExitedWithCode(0), "");
}

TEST_F(ServerTest, ASecondSignalEndsOneThatCouldNotTurnWhenBothCame) {
  const auto end_twice = [this] {
    options_.turn_begins = [count = 0](const Now&) mutable {
      if (++count == 2) {
        while (true) {
          ::raise(SIGTERM);
        }
      }
    };
    Start();
    SocketClient(path_).Send(kStats);
    thread_.join();
    ::_exit(0);
  };
  EXPECT_EXIT(end_twice(), ::testing::ExitedWithCode(1), "");
}

TEST_F(ServerTest, AnAdminClientThatHasGoneIsForgotten) {
  std::promise<void> begun;
  std::promise<void> finish;
  options_.admin = [&](const AdminCommand&, const std::atomic<bool>&) -> AdminAnswer {
    begun.set_value();
    finish.get_future().wait();
    return AdminResult(protocol::VerifyResult{});
  };
  Start();
  {
    SocketClient admin(path_);
    admin.Send(kVerify);
    begun.get_future().wait();
  }
  finish.set_value();
  SocketClient other(path_);
  other.Send(kStats);
  other.ReadUntil("commit_sequence");
  EXPECT_TRUE(Stop().ok());
}

ptrdiff_t SettingsGiven(const FakeEngine& engine) {
  return std::ranges::count_if(engine.asked, [](const auto& one) {
    return std::holds_alternative<engine::Configure>(one.command);
  });
}

TEST_F(ServerTest, AReloadReadsItsFilesBesideTheTurn) {
  std::promise<void> reading;
  std::promise<void> go_on;
  std::atomic<int> reads = 0;
  std::atomic<int> applied = 0;
  options_.reloading = [] {};
  options_.reload = [&] {
    if (reads++ == 0) {
      reading.set_value();
      go_on.get_future().wait();
    }
    return [&]() -> std::optional<engine::Configure> {
      ++applied;
      return engine::Configure();
    };
  };
  Start();
  ::kill(::getpid(), SIGHUP);
  reading.get_future().wait();
  PassATurn();
  EXPECT_EQ(applied, 0);
  ::kill(::getpid(), SIGHUP);  // for what was written behind the reader
  PassATurn();
  EXPECT_EQ(reads, 1) << "one at a time";
  go_on.set_value();
  while (applied < 2) {
    PassATurn();
  }
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(SettingsGiven(engine_), 2);
}

TEST_F(ServerTest, AStopWaitsForNoReload) {
  std::promise<void> reading;
  std::promise<void> go_on;
  options_.reloading = [] {};
  options_.reload = [&] {
    reading.set_value();
    go_on.get_future().wait();
    return [] { return std::optional(engine::Configure()); };
  };
  options_.stopping = [&] { go_on.set_value(); };
  Start();
  ::kill(::getpid(), SIGHUP);
  reading.get_future().wait();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(SettingsGiven(engine_), 0);
}

TEST_F(ServerTest, ConnectionsAboveTheCapAreTurnedAway) {
  options_.connections_max = 2;
  Start();
  SocketClient first(path_);
  SocketClient second(path_);
  first.Send(kStats);
  first.ReadUntil("commit_sequence");
  second.Send(kStats);
  second.ReadUntil("commit_sequence");
  EXPECT_EQ(SocketClient(path_).ReadAll(), "no room");
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerTest, OneThatAsksForMuchWorkAtOnceIsServedOverSeveralTurns) {
  engine_.on_execute = [this] {
    engine_.on_execute = {};
    Busy(Millis(260));
  };
  Start();
  SocketClient client(path_);
  constexpr int kRequests = 8;
  std::string requests;
  for (int i = 0; i < kRequests; ++i) {
    requests += kStats;
  }
  client.Send(requests);
  client.EndSending();
  EXPECT_THAT(client.ReadAll(), EndsWith("}"));
  EXPECT_TRUE(Stop().ok());
  ASSERT_EQ(engine_.asked.size(), size_t{kRequests});
  EXPECT_LT(engine_.asked[0].turn, engine_.asked[1].turn);
  // Where the server is not run for a while, they need some more.
  EXPECT_LT(engine_.asked.back().turn - engine_.asked[1].turn, kRequests - 2) << "one turn each";
}

// As TLS does with who never ends a handshake: there is nothing to say, and the client stays.
class Unfinished final : public PlainSession {
 public:
  explicit Unfinished(std::atomic<int>* refused) : refused_(refused) {}

  void Refuse(const Status& /*why*/) override { ++*refused_; }

  bool finished() const override { return *refused_ > 0; }

  Phase phase() const override { return Phase::kHead; }

 private:
  std::atomic<int>* const refused_;
};

TEST_F(ServerTest, WhoWasRefusedAndStaysIsRefusedOnceAndLetGoOf) {
  std::atomic<int> refused = 0;
  bool is_first = true;
  options_.head_timeout = Millis(1);
  options_.linger_timeout = Millis(0);
  new_session_ = [&]() -> std::unique_ptr<Session> {
    if (std::exchange(is_first, false)) {
      return std::make_unique<Unfinished>(&refused);
    }
    return std::make_unique<http::HttpSession>(reader_options_, router_);
  };
  Start();
  SocketClient stays(path_);
  EXPECT_EQ(stays.ReadAll(), "");
  for (int i = 0; i < 3; ++i) {
    SocketClient(path_).ReadAll();  // ended for its silence, each in a turn of its own
  }
  EXPECT_EQ(refused, 1);
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(figures_->timed_out, 4U) << "each of them once";
}

TEST_F(ServerTest, ConnectionThatNeverSpeaksIsClosed) {
  options_.head_timeout = Millis(1);
  Start();
  EXPECT_EQ(SocketClient(path_).ReadAll(), "");
  SocketClient slow(path_);
  slow.SendWhatFits("GET /v1/st");  // its millisecond may be over already
  EXPECT_THAT(slow.ReadAll(), ::testing::AnyOf("", StartsWith("HTTP/1.1 408")));
  EXPECT_TRUE(Stop().ok());
}

}  // namespace
}  // namespace delayd
