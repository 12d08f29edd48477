// When a change is written, with which others, by which thread, and who is answered when.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <string>
#include <thread>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/log.h"
#include "tests/unit/daemon/server_fixture.h"

namespace delayd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerCommitTest : public ServerTest {
 protected:
  // As the numbers `first` to `last` of all commits, each asked for when the one before is durable.
  static void EnqueueInTurn(SocketClient* client, uint64_t first, uint64_t last) {
    for (uint64_t sequence = first; sequence <= last; ++sequence) {
      client->Send(kEnqueue);
      client->ReadUntil("Delayd-Commit: " + std::to_string(sequence));
    }
  }

  // Until the core thread has written one. On a busy machine the way to the committer may take so
  // long that the disk looks slow. The number of the last.
  uint64_t EnqueueUntilTheCoreWrites(SocketClient* client) {
    constexpr uint64_t kMax = 1000;
    uint64_t sequence = 0;
    while (store_.last_writer != thread_.get_id() && sequence < kMax) {
      ++sequence;
      EnqueueInTurn(client, sequence, sequence);
    }
    EXPECT_EQ(store_.last_writer, thread_.get_id()) << "it left all to the committer";
    return sequence;
  }
};

TEST_F(ServerCommitTest, RequestIsAnsweredWhenItsChangeIsDurable) {
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

TEST_F(ServerCommitTest, WhatComesDuringACommitShareTheNextOne) {
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
  EXPECT_THAT(engine_.batch_sizes, ::testing::ElementsAre(1, 3));
}

TEST_F(ServerCommitTest, WhatComesWhileOthersAreServedSharesTheirCommit) {
  SendWhileAnotherIsServed(&late_);
  Start();
  SocketClient first(path_);
  SocketClient second(path_);
  second.Send(kStats);
  second.ReadUntil("commit_sequence");
  for (int round = 0; round < 20; ++round) {
    EnqueueTogether(&first, &second);
  }
  EXPECT_TRUE(Stop().ok());
  EXPECT_THAT(engine_.batch_sizes, ::testing::Contains(2U));
}

TEST_F(ServerCommitTest, ASmallCommitIsWrittenByTheCoreThreadWhileTheDiskIsQuick) {
  Start();
  const std::thread::id core = thread_.get_id();
  SocketClient client(path_);
  const uint64_t quick = EnqueueUntilTheCoreWrites(&client);
  store_.takes = Millis(3);
  EnqueueInTurn(&client, quick + 1, quick + 10);
  EXPECT_TRUE(Stop().ok());
  const auto writers = store_.writers;
  ASSERT_EQ(writers.size(), quick + 10);
  EXPECT_NE(writers.front(), core);  // nobody knows yet that they are small
  // The first slow one may hold up the turn, and no other.
  EXPECT_EQ(std::count(writers.end() - 9, writers.end(), core), 0);
}

TEST_F(ServerCommitTest, ACommitOfManyBytesIsNotWrittenByTheCoreThread) {
  Start();
  const std::thread::id core = thread_.get_id();
  SocketClient client(path_);
  const uint64_t small = EnqueueUntilTheCoreWrites(&client);
  engine_.payload_bytes = size_t{1} << 20;
  EnqueueInTurn(&client, small + 1, small + 3);
  EXPECT_TRUE(Stop().ok());
  const auto writers = store_.writers;
  ASSERT_EQ(writers.size(), small + 3);
  EXPECT_EQ(std::count(writers.end() - 3, writers.end(), core), 0);
}

TEST_F(ServerCommitTest, P1SeveralClientsAreAnsweredWhenTheirCommitIsDurableAndNotYetReadable) {
  SendWhileAnotherIsServed(&late_);
  store_.hold_durable = true;
  Start();
  SocketClient first(path_);
  SocketClient second(path_);
  second.Send(kStats);
  second.ReadUntil("commit_sequence");  // or it may not be known yet when the first one is served
  // The core thread writes small batches once it has seen some, and the disk was quick.
  for (int round = 1; round <= 1000 && !store_.holding && !HasFailure(); ++round) {
    EnqueueTogether(&first, &second);
  }
  EXPECT_TRUE(store_.holding) << "answered only when the commit had returned";
  store_.let_go.set_value();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(engine_.committed, engine_.sealed);
}

TEST_F(ServerCommitTest, WhatWaitsForNoCommitIsAnsweredBeforeOneIsBegun) {
  std::atomic<SocketClient*> late = nullptr;
  SendWhileAnotherIsServed(&late, kLease);
  // Only where the lease comes in time: the server may not be run for a while before it.
  engine_.on_execute = [this, send = engine_.on_execute] {
    send();
    if (std::holds_alternative<engine::Lease>(engine_.asked.back().command)) {
      store_.gated = true;
    }
  };
  engine_.job_ready = true;
  Start();
  SocketClient first(path_);
  SocketClient second(path_);
  second.Send(kStats);
  second.ReadUntil("commit_sequence");
  // From then on the core thread itself writes them, if the disk is quick.
  EnqueueInTurn(&first, 1, 20);
  late = &second;
  first.Send(kEnqueue);
  EXPECT_THAT(second.ReadUntil("\"jobs\":["), HasSubstr("\"jobs\":["));
  store_.gate.set_value();
  first.ReadUntil("Delayd-Commit: 21");
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerCommitTest, AJobThatAWorkerWaitsForAndThatFallsDueSoonIsNotHeldUpByTheDisk) {
  engine_.is_awaited = true;
  engine_.until_next_event = Micros(1500);
  store_.takes = Millis(1);
  Start();
  const std::thread::id core = thread_.get_id();
  SocketClient client(path_);
  EnqueueInTurn(&client, 1, 20);
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(store_.writers.size(), 20U);
  EXPECT_EQ(std::ranges::count(store_.writers, core), 0);
}

TEST_F(ServerCommitTest, AJobThatFallsDueLongAfterTheCommitDoesNotCostAThreadItsWakeUp) {
  engine_.is_awaited = true;
  engine_.until_next_event = std::chrono::seconds(1);
  Start();
  SocketClient client(path_);
  EnqueueUntilTheCoreWrites(&client);
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerCommitTest, WhatOnlyReadsIsAnsweredWhileChangesWaitForRoom) {
  options_.uncommitted_bytes_max = 0;
  store_.gated = true;
  Start();
  SocketClient first(path_);
  first.Send(kEnqueue);
  PassATurn();
  SocketClient second(path_);
  second.Send(kStats + kEnqueue + "GET /nowhere HTTP/1.1\r\nHost: d\r\n\r\n");
  second.ReadUntil("commit_sequence");
  SocketClient third(path_);
  for (int i = 0; i < 10; ++i) {  // more than are answered at once
    third.Send("HEAD /nowhere/" + std::to_string(i) + " HTTP/1.1\r\nHost: d\r\n\r\n");
  }
  third.Send(kStats);
  third.ReadUntil("commit_sequence");
  third.EndSending();
  EXPECT_EQ(third.ReadAll().find("201"), std::string::npos);
  store_.gate.set_value();
  EXPECT_THAT(second.ReadUntil(" 404 "), AllOf(HasSubstr("Delayd-Commit: 2"), HasSubstr(" 404 ")));
  EXPECT_TRUE(Stop().ok());
  EXPECT_THAT(engine_.batch_sizes, ::testing::ElementsAre(1, 1));
}

TEST_F(ServerCommitTest, AStopWhoseTimeIsOverSleepsUntilTheCommitHasEnded) {
  store_.gated = true;
  options_.stop_grace = Millis(0);
  std::atomic<int> turns = 0;
  std::promise<void> spins;
  options_.turn_begins = [&](const Now&) {
    if (++turns == 1000) {
      spins.set_value();
    }
  };
  Start();
  SocketClient client(path_);
  client.Send(kEnqueue);
  PassATurn();
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(spins.get_future().wait_for(std::chrono::milliseconds(200)),
            std::future_status::timeout);
  store_.gate.set_value();
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 201"));
  thread_.join();
  EXPECT_TRUE(result_.ok());
}

TEST_F(ServerCommitTest, ACommitThatDoesNotComeBackIsToldWhileItIsUnderWay) {
  options_.commit_late = Millis(20);
  options_.commit_stuck = Millis(40);
  store_.gated = true;
  log::Start({});
  const auto errors = [] { return log::Counts()[static_cast<size_t>(log::Level::kError)]; };
  const uint64_t before = errors();
  ::testing::internal::CaptureStderr();
  Start();
  SocketClient client(path_);
  client.Send(kEnqueue);
  while (errors() == before) {
    std::this_thread::yield();
  }
  PassATurn();
  store_.gate.set_value();
  client.ReadUntil("Delayd-Commit: 1");
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(errors(), before + 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("error a commit is stuck"));
}

// Of what it wrote itself the core thread could tell nothing, and the committer's neither.
TEST_F(ServerCommitTest, ADiskThatHangsWhereItsRoomIsAskedForIsToldByTheCoreThread) {
  std::atomic<bool> hangs = false;
  std::promise<void> hanging;
  std::promise<void> answers;
  options_.commit_late = Millis(20);
  options_.slow_commit = std::chrono::hours(1);
  options_.disk = {.reserve = 1,
                   .interval = Millis(1),
                   .free_bytes = [&](const std::string&) -> StatusOr<uint64_t> {
                     if (hangs.exchange(false)) {
                       hanging.set_value();
                       answers.get_future().wait();
                     }
                     return 2;
                   }};
  const auto warnings = [] { return log::Counts()[static_cast<size_t>(log::Level::kWarn)]; };
  Start();
  SocketClient client(path_);
  EnqueueInTurn(&client, 1, 20);
  hangs = true;
  hanging.get_future().wait();  // from then on the committer tells of nothing
  const uint64_t before = warnings();
  while (warnings() == before) {
    SocketClient(path_).Send(kEnqueue);
    PassATurn();
  }
  EXPECT_EQ(warnings(), before + 1);
  answers.set_value();
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ServerCommitTest, ASlowTurnTellsHowLongItHasWaitedForTheDisk) {
  options_.slow_turn = Millis(0);
  store_.takes = Micros(1100);
  log::Start({});
  ::testing::internal::CaptureStderr();
  Start();
  SocketClient client(path_);
  EnqueueUntilTheCoreWrites(&client);
  EXPECT_TRUE(Stop().ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::ContainsRegex("slow turn .* commit_ms=[1-9]"));
}

TEST_F(ServerCommitTest, FailedCommitIsToldAsUnknownAndEndsTheServer) {
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

TEST_F(ServerCommitTest, AStoreThatHasEndedEndsTheServerWithoutACommit) {
  options_.disk.interval = Millis(1);
  Start();
  SocketClient client(path_);
  client.Send(kLease);
  PassATurn();
  store_.ended = true;
  EXPECT_THAT(client.ReadAll(), HasSubstr("the daemon's storage failed"));
  thread_.join();
  EXPECT_EQ(result_.reason(), "data_dir_replaced");
}

TEST_F(ServerCommitTest, FailedCommitIsToldAsUnknownToWhoLeasesAJobByName) {
  store_.inner.FailNextCommit(false);
  Start();
  SocketClient client(path_);
  client.Send("POST /v1/jobs/1/lease HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n");
  PassATurn();
  SocketClient(path_).Send(kEnqueue);
  EXPECT_THAT(client.ReadAll(), HasSubstr("outcome_unknown"));
  thread_.join();
}

}  // namespace
}  // namespace delayd
