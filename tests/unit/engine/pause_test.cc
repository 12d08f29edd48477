#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

QueueView Queue(EngineHarness* harness) {
  const Reply reply = harness->Call(ListQueues{.queue = "default"});
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  return std::get<QueueList>(reply.body).queues.at(0);
}

TEST(PauseTest, APausedQueueHandsNothingOutAndTellsSo) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Pause{.queue = "default"}).status.ok());
  EXPECT_TRUE(harness.LeaseNow().empty());
  EXPECT_TRUE(Queue(&harness).paused);
  EXPECT_EQ(Queue(&harness).pause_left, std::nullopt);
  EXPECT_EQ(Queue(&harness).ready, 1U);
}

TEST(PauseTest, SurvivesARestart) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Pause{.queue = "default"}).status.ok());
  harness.Restart();
  EXPECT_TRUE(harness.LeaseNow().empty());
  ASSERT_TRUE(harness.Call(Resume{.queue = "default"}).status.ok());
  harness.Restart();
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(PauseTest, P1IsAnsweredWhenItIsDurable) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  const RequestId pause = harness.Send(Pause{.queue = "default"});
  EXPECT_FALSE(harness.HasReply(pause));
  harness.Turn();
  EXPECT_TRUE(harness.HasReply(pause));
}

TEST(PauseTest, ATimedPauseEndsByItselfAndServesWhoWaits) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Pause{.queue = "default", .duration = Millis(5000)}).status.ok());
  const RequestId lease = harness.Send(Lease{.queues = {"default"}, .wait = Millis(60'000)});
  harness.Wait(Millis(4999));
  EXPECT_FALSE(harness.HasReply(lease));
  EXPECT_EQ(Queue(&harness).pause_left, Millis(1));
  EXPECT_EQ(harness.UntilNextEvent(), Millis(1));
  harness.Wait(Millis(1));
  EXPECT_EQ(std::get<Leased>(harness.Take(lease).body).jobs.size(), 1U);
  EXPECT_FALSE(Queue(&harness).paused);
}

TEST(PauseTest, ATimedPauseGoesOnAfterARebootForWhatIsLeftOfIt) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Pause{.queue = "default", .duration = Millis(5000)}).status.ok());
  harness.Wait(Millis(2000));
  harness.Restart(kBootId + 1);
  EXPECT_EQ(Queue(&harness).pause_left, Millis(3000));
  harness.Wait(Millis(3000));
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(PauseTest, ResumeServesWhoWaits) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Pause{.queue = "default"}).status.ok());
  const RequestId lease = harness.Send(Lease{.queues = {"default"}, .wait = Millis(60'000)});
  harness.Turn();
  EXPECT_FALSE(harness.HasReply(lease));
  ASSERT_TRUE(harness.Call(Resume{.queue = "default"}).status.ok());
  EXPECT_TRUE(harness.HasReply(lease));
}

TEST(PauseTest, ATimedPauseThatWasReplacedDoesNotEndTheNextOne) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Pause{.queue = "default", .duration = Millis(5000)}).status.ok());
  ASSERT_TRUE(harness.Call(Pause{.queue = "default"}).status.ok());
  harness.Wait(Millis(5000));
  EXPECT_TRUE(Queue(&harness).paused);
  EXPECT_TRUE(harness.LeaseNow().empty());
}

TEST(PauseTest, OfAnUnknownQueueIsRefusedUnlessItIsToBeCreated) {
  EngineHarness harness;
  EXPECT_EQ(harness.ReasonOf(Pause{.queue = "default"}), "not_found");
  EXPECT_EQ(harness.ReasonOf(Resume{.queue = "default"}), "not_found");
  EXPECT_EQ(harness.ReasonOf(Pause{.queue = "-"}), "invalid_queue");
  EXPECT_EQ(harness.ReasonOf(Resume{.queue = "-"}), "invalid_queue");
  ASSERT_TRUE(harness.Call(Pause{.queue = "default", .create = true}).status.ok());
  harness.EnqueueOk(In(Millis(0)));
  EXPECT_TRUE(harness.LeaseNow().empty());
}

TEST(PauseTest, NoTimeAndTooLongATimeAreRefused) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  for (const Millis duration : {Millis(0), Millis(limits::kDelayMsMax + 1)}) {
    EXPECT_EQ(harness.ReasonOf(Pause{.queue = "default", .duration = duration}),
              "invalid_duration");
  }
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

// Hundreds may wait, each for a thousand jobs.
TEST(PauseTest, P10AfterAResumeEachTurnServesSoManyAndNoQueueWaitsForAnother) {
  EngineHarness harness;
  const size_t per_turn = limits::kServeBytesMax / limits::kServeBytesOfJob;
  const size_t count = limits::kLeaseCountMax;
  const size_t waiting = 3 * per_turn / count;
  for (size_t i = 0; i < waiting; ++i) {
    harness.Send(Enqueue{std::vector<JobSpec>(count, In(Millis(0)))});
  }
  harness.EnqueueOk({.queue = "other", .due = DueAfter{}});
  for (const std::string queue : {"default", "other"}) {
    ASSERT_TRUE(harness.Call(Pause{.queue = queue}).status.ok());
  }
  const auto lease = [&harness](std::string queue) {
    return harness.Send(Lease{
        .queues = {std::move(queue)}, .count = limits::kLeaseCountMax, .wait = Millis(60'000)});
  };
  for (size_t i = 0; i < waiting; ++i) {
    lease("default");
  }
  const RequestId other = lease("other");
  harness.Send(Resume{.queue = "default"});
  harness.Send(Resume{.queue = "other"});
  uint64_t before = 0;
  const auto handed_out = [&] {
    const uint64_t all = harness.engine().stats().handed_out;
    return all - std::exchange(before, all);
  };
  EXPECT_TRUE(harness.engine().Advance(harness.now()));
  EXPECT_LE(handed_out(), per_turn + count);
  EXPECT_TRUE(harness.engine().Advance(harness.now()));
  EXPECT_LE(handed_out(), per_turn + count);
  harness.CommitAll();
  EXPECT_TRUE(harness.HasReply(other));
  harness.Turn();
  EXPECT_EQ(harness.engine().stats().handed_out, waiting * count + 1) << "all turns later";
}

// Each hand-out looks at all queues that its request names.
TEST(PauseTest, P10AfterAResumeEachTurnServesSoManyWhoNameManyQueues) {
  EngineHarness harness;
  std::vector<std::string> names = {"default"};
  while (names.size() < 1000) {
    names.push_back("q" + std::to_string(names.size()));
  }
  const size_t per_turn = limits::kServeBytesMax / (names.size() * limits::kServeBytesOfName);
  const size_t waiting = 2 * per_turn;
  harness.Send(Enqueue{std::vector<JobSpec>(waiting, In(Millis(0)))});
  ASSERT_TRUE(harness.Call(Pause{.queue = "default"}).status.ok());
  for (size_t i = 0; i < waiting; ++i) {
    harness.Send(Lease{.queues = names, .wait = Millis(60'000)});
  }
  harness.Send(Resume{.queue = "default"});
  EXPECT_TRUE(harness.engine().Advance(harness.now()));
  EXPECT_LE(harness.engine().stats().handed_out, per_turn + 1);
  harness.Turn();
  EXPECT_EQ(harness.engine().stats().handed_out, waiting) << "all turns later";
}

TEST(PauseTest, AWaitThatEndsBeforeItsTurnHasComeGetsWhatIsReady) {
  EngineHarness harness;
  const size_t count = limits::kLeaseCountMax;
  const size_t served = limits::kServeBytesMax / limits::kServeBytesOfJob / count + 1;
  for (size_t i = 0; i <= served; ++i) {
    harness.Send(Enqueue{std::vector<JobSpec>(count, In(Millis(0)))});
  }
  ASSERT_TRUE(harness.Call(Pause{.queue = "default"}).status.ok());
  const auto lease = [&harness](Millis wait) {
    return harness.Send(
        Lease{.queues = {"default"}, .count = limits::kLeaseCountMax, .wait = wait});
  };
  for (size_t i = 0; i < served; ++i) {
    lease(Millis(60'000));
  }
  const RequestId last = lease(Millis(10));
  harness.Send(Resume{.queue = "default"});
  EXPECT_TRUE(harness.engine().Advance(harness.now()));
  ASSERT_EQ(harness.engine().stats().handed_out, served * count) << "its turn is the next one";
  harness.Wait(Millis(10));
  EXPECT_EQ(std::get<Leased>(harness.Take(last).body).jobs.size(), count);
}

}  // namespace
}  // namespace delayd::engine
