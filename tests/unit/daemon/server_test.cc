#include "daemon/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/http/http_session.h"
#include "storage/memory_job_store.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/socket_client.h"

namespace delayd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kEnqueue =
    "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
    "Content-Length: 13\r\n\r\n{\"queue\":\"q\"}";
const std::string kStats = "GET /v1/stats HTTP/1.1\r\nHost: d\r\n\r\n";
const std::string kVerify =
    "POST /v1/admin/verify HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n";
const std::string kLease =
    "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
    "Content-Length: 14\r\n\r\n{\"wait\":\"30s\"}";

// Commits wait until the test lets them go.
class GatedStore final : public storage::JobStore {
 public:
  Status Get(storage::Table table, std::string_view key, std::string* value) const override {
    return inner.Get(table, key, value);
  }

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return inner.Scan(table, from, to, visit);
  }

  Status Commit(const storage::Batch& batch, const OnDurable& on_durable) override {
    if (gated) {
      gate.get_future().wait();
      gated = false;
    }
    writers.push_back(std::this_thread::get_id());
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
    while (slow && std::chrono::steady_clock::now() < end) {  // what a busy disk takes
    }
    return inner.Commit(batch, [&] {
      if (on_durable) {
        holding = hold_durable.load();  // before the answers: who has one knows
        on_durable();
        if (holding) {
          let_go.get_future().wait();
          hold_durable = false;
        }
      }
    });
  }

  Status Close() override { return inner.Close(); }

  storage::MemoryJobStore inner;
  std::vector<std::thread::id> writers;  // of each commit; read when the server has ended
  std::atomic<bool> slow{false};
  std::promise<void> gate;
  std::atomic<bool> hold_durable{false};  // a commit that tells of it does not return until let go
  std::atomic<bool> holding{false};
  std::promise<void> let_go;
  std::atomic<bool> gated{false};
};

// Each byte is a request for a job, and is taken only when the one before it is answered.
class OneAtATime final : public Session {
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

  void Stop() override { stopped_ = true; }

  void Refuse(const Status& /*why*/) override {}

  bool wants_input() const override { return true; }

  bool has_more() const override { return !busy_ && waiting_ > 0; }

  bool held_up() const override { return busy_ && waiting_ > 0; }

  std::string_view output() const override { return output_; }

  void Sent(size_t bytes) override { output_.erase(0, bytes); }

  bool finished() const override { return stopped_ && !busy_ && waiting_ == 0; }

  Phase phase() const override { return Phase::kWorking; }

 private:
  size_t waiting_ = 0;
  bool busy_ = false;
  bool stopped_ = false;
  std::string output_;
};

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    std::string pattern = testing::TempDir() + "delayd_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/d.sock";
  }

  ~ServerTest() override {
    if (thread_.joinable()) {
      EXPECT_TRUE(Stop().ok());
    }
    ::unlink((path_ + ".lock").c_str());
    ::rmdir(directory_.c_str());
  }

  void Start() {
    std::promise<void> listening;
    thread_ = std::thread([this, &listening] {
      Server server(options_, &engine_, &store_, &clock_);
      StatusOr<Listener> listener = Listener::OpenUnix(path_);
      EXPECT_TRUE(listener.ok()) << listener.status().message();
      server.Listen(std::move(listener).value(), new_session_, "no room");
      listening.set_value();
      result_ = server.Run();
    });
    listening.get_future().wait();
  }

  // By the signal, as a service manager does it. Its handler stands before anybody is served.
  Status Stop() {
    ::kill(::getpid(), SIGTERM);
    thread_.join();
    return result_;
  }

  // Once this returns, everything sent before by other clients has been executed too.
  void PassATurn() {
    SocketClient client(path_);
    client.Send(kStats);
    client.ReadUntil("commit_sequence");
  }

  // An enqueue of `late`, once, while that of another client is executed.
  void SendWhileAnotherIsServed(std::atomic<SocketClient*>* late,
                                std::string_view request = kEnqueue) {
    engine_.on_execute = [this, late, request] {
      if (std::holds_alternative<engine::Enqueue>(engine_.asked.back().command)) {
        if (SocketClient* client = late->exchange(nullptr)) {
          client->Send(request);
        }
      }
    };
  }

  ServerOptions options_;
  const http::ReaderOptions reader_options_;
  const http::Router router_{http::RouterOptions{}};
  Server::SessionFactory new_session_ = [this] {
    return std::make_unique<http::HttpSession>(reader_options_, router_);
  };
  FakeEngine engine_;
  GatedStore store_;
  const SystemClock clock_;
  std::string directory_;
  std::string path_;
  std::thread thread_;
  Status result_;
};

TEST_F(ServerTest, RequestIsAnsweredWhenItsChangeIsDurable) {
  store_.gated = true;
  Start();
  SocketClient client(path_);
  client.Send(kEnqueue);
  PassATurn();
  PassATurn();
  // Executed, but not answered: the commit is held.
  client.Send(kStats);
  PassATurn();
  store_.gate.set_value();
  const std::string output = client.ReadUntil("commit_sequence");
  EXPECT_THAT(output, StartsWith("HTTP/1.1 201 Created"));
  EXPECT_THAT(output, HasSubstr("Delayd-Commit: 1"));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerTest, WhatComesDuringACommitShareTheNextOne) {
  store_.gated = true;
  Start();
  SocketClient first(path_);
  first.Send(kEnqueue);
  PassATurn();
  SocketClient second(path_);
  SocketClient third(path_);
  second.Send(kEnqueue + kEnqueue);
  third.Send(kEnqueue);
  PassATurn();
  PassATurn();
  store_.gate.set_value();
  EXPECT_THAT(third.ReadUntil("\"id\""), HasSubstr("Delayd-Commit: 2"));
  EXPECT_TRUE(Stop().ok());
  EXPECT_THAT(engine_.batch_sizes, testing::ElementsAre(1, 3));
}

TEST_F(ServerTest, WhatComesWhileOthersAreServedSharesTheirCommit) {
  std::atomic<SocketClient*> late = nullptr;
  SendWhileAnotherIsServed(&late);
  Start();
  SocketClient first(path_);
  SocketClient second(path_);
  second.Send(kStats);
  second.ReadUntil("commit_sequence");
  late = &second;
  first.Send(kEnqueue);
  second.ReadUntil("Delayd-Commit: 1");
  first.ReadUntil("Delayd-Commit: 1");
  EXPECT_TRUE(Stop().ok());
  EXPECT_THAT(engine_.batch_sizes, testing::ElementsAre(2));
}

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
  EXPECT_LE(engine_.asked.back().turn - engine_.asked.front().turn, 8);
}

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

TEST_F(ServerTest, ASmallCommitIsWrittenByTheCoreThreadWhileTheDiskIsQuick) {
  Start();
  const std::thread::id core = thread_.get_id();
  SocketClient client(path_);
  const auto enqueue = [&client](uint64_t sequence) {
    client.Send(kEnqueue);
    client.ReadUntil("Delayd-Commit: " + std::to_string(sequence));
  };
  for (uint64_t sequence = 1; sequence <= 40; ++sequence) {
    store_.slow = sequence > 30;
    enqueue(sequence);
  }
  EXPECT_TRUE(Stop().ok());
  const auto writers = store_.writers;
  ASSERT_EQ(writers.size(), 40U);
  EXPECT_NE(writers.front(), core);  // nobody knows yet that they are small
  EXPECT_GT(std::count(writers.begin(), writers.begin() + 30, core), 0);
  // The first slow one may hold up the turn, and no other.
  EXPECT_EQ(std::count(writers.begin() + 31, writers.end(), core), 0);
}

TEST_F(ServerTest, P1SeveralClientsAreAnsweredWhenTheirCommitIsDurableAndNotYetReadable) {
  std::atomic<SocketClient*> late = nullptr;
  SendWhileAnotherIsServed(&late);
  store_.hold_durable = true;
  Start();
  SocketClient first(path_);
  SocketClient second(path_);
  second.Send(kStats);
  second.ReadUntil("commit_sequence");  // or it may not be known yet when the first one is served
  // The core thread writes small batches once it has seen some, and the disk was quick.
  for (int round = 1; round <= 1000 && !store_.holding && !HasFailure(); ++round) {
    late = &second;
    first.Send(kEnqueue);
    const std::string commit = "Delayd-Commit: " + std::to_string(round) + "\r\n";
    EXPECT_THAT(second.ReadUntil(commit), HasSubstr(commit));
    EXPECT_THAT(first.ReadUntil(commit), HasSubstr(commit));
  }
  EXPECT_TRUE(store_.holding) << "answered only when the commit had returned";
  store_.let_go.set_value();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(engine_.committed, engine_.sealed);
}

TEST_F(ServerTest, WhatWaitsForNoCommitIsAnsweredBeforeOneIsBegun) {
  std::atomic<SocketClient*> late = nullptr;
  SendWhileAnotherIsServed(&late, kLease);
  engine_.job_ready = true;
  Start();
  SocketClient first(path_);
  SocketClient second(path_);
  second.Send(kStats);
  second.ReadUntil("commit_sequence");
  // From then on the core thread itself writes them, if the disk is quick.
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
    first.Send(kEnqueue);
    first.ReadUntil("Delayd-Commit: " + std::to_string(sequence));
  }
  store_.gated = true;
  late = &second;
  first.Send(kEnqueue);
  EXPECT_THAT(second.ReadUntil("\"jobs\":["), HasSubstr("\"jobs\":["));
  store_.gate.set_value();
  first.ReadUntil("Delayd-Commit: 21");
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerTest, AJobThatAWorkerWaitsForAndThatFallsDueSoonIsNotHeldUpByTheDisk) {
  engine_.is_awaited = true;
  engine_.until_next_event = Millis(1);
  Start();
  const std::thread::id core = thread_.get_id();
  SocketClient client(path_);
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
    client.Send(kEnqueue);
    client.ReadUntil("Delayd-Commit: " + std::to_string(sequence));
  }
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(store_.writers.size(), 20U);
  EXPECT_EQ(std::ranges::count(store_.writers, core), 0);
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

TEST_F(ServerTest, FailedCommitIsToldAsUnknownAndEndsTheServer) {
  store_.inner.FailNextCommit(false);
  Start();
  SocketClient client(path_);
  client.Send(kEnqueue);
  const std::string output = client.ReadAll();
  EXPECT_THAT(output, StartsWith("HTTP/1.1 503 Service Unavailable"));
  EXPECT_THAT(output, HasSubstr("outcome_unknown"));
  thread_.join();
  EXPECT_FALSE(result_.ok());
}

// It was dead, perhaps, and is pending since then.
TEST_F(ServerTest, FailedCommitIsToldAsUnknownToWhoLeasesAJobByName) {
  store_.inner.FailNextCommit(false);
  Start();
  SocketClient client(path_);
  client.Send("POST /v1/jobs/1/lease HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n");
  PassATurn();
  SocketClient(path_).Send(kEnqueue);
  EXPECT_THAT(client.ReadAll(), HasSubstr("outcome_unknown"));
  thread_.join();
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
  PassATurn();
  client.Close();
  EXPECT_EQ(abandoned.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
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
              testing::AllOf(HasSubstr("Connection: close"), HasSubstr(R"({"jobs":[]})")));
  store_.gate.set_value();
  EXPECT_THAT(writer.ReadAll(), HasSubstr("201 Created"));
  thread_.join();
  EXPECT_TRUE(result_.ok());
  EXPECT_FALSE(SocketClient(path_).connected());
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
  size_t created = 0;
  for (size_t at = output.find("201 Created"); at != std::string::npos;
       at = output.find("201 Created", at + 1)) {
    ++created;
  }
  EXPECT_EQ(created, 50U);
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

TEST_F(ServerTest, ConnectionThatNeverSpeaksIsClosed) {
  options_.head_timeout = Millis(1);
  Start();
  EXPECT_EQ(SocketClient(path_).ReadAll(), "");
  SocketClient slow(path_);
  slow.Send("GET /v1/st");
  EXPECT_THAT(slow.ReadAll(), testing::AnyOf("", StartsWith("HTTP/1.1 408")));
  EXPECT_TRUE(Stop().ok());
}

}  // namespace
}  // namespace delayd
