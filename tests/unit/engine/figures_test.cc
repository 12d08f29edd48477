// What the engine tells of its queues and of all its jobs.
#include "base/limits.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

TEST(QueuesTest, P1CountersWaitForTheCommitOfWhatTheyCount) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(1000)));
  EXPECT_TRUE(harness.HasReply(harness.Send(ListQueues{})));
  harness.Send(Enqueue{{In(Millis(1000))}});
  const RequestId queues = harness.Send(ListQueues{});
  const RequestId stats = harness.Send(GetStats{});
  EXPECT_FALSE(harness.HasReply(queues));
  EXPECT_FALSE(harness.HasReply(stats));
  harness.CommitAll();
  EXPECT_EQ(std::get<Indirect<StatsView>>(harness.Take(stats).body)->scheduled, 2U);
}

TEST(QueuesTest, CountByState) {
  EngineHarness harness;
  harness.EnqueueOk({.queue = "q", .due = DueAfter{Millis(1000)}});
  harness.EnqueueOk({.queue = "q"});
  harness.EnqueueOk({.queue = "q"});
  ASSERT_EQ(harness.LeaseNow(1, "q").size(), 1U);
  const Reply reply = harness.Call(ListQueues{.queue = "q"});
  ASSERT_TRUE(reply.status.ok());
  const QueueView& view = std::get<QueueList>(reply.body).queues.at(0);
  EXPECT_EQ(view.scheduled, 1U);
  EXPECT_EQ(view.ready, 1U);
  EXPECT_EQ(view.leased, 1U);
  EXPECT_EQ(harness.ReasonOf(ListQueues{.queue = "other"}), "not_found");
  harness.Send(Lease{.queues = {"only-waited-for"}, .wait = Millis(1000)});
  EXPECT_EQ(std::get<QueueList>(harness.Call(ListQueues{}).body).queues.size(), 1U);
}

TEST(QueuesTest, AreAPageWhereNoLimitIsGiven) {
  EngineHarness harness;
  for (size_t i = 0; i <= limits::kListLimitMax; ++i) {
    harness.EnqueueOk({.queue = "q" + std::to_string(i)});
  }
  const Reply reply = harness.Call(ListQueues{});
  const auto& list = std::get<QueueList>(reply.body);
  EXPECT_EQ(list.queues.size(), limits::kListLimitMax);
  const Reply rest = harness.Call(ListQueues{.cursor = list.next_cursor});
  EXPECT_EQ(std::get<QueueList>(rest.body).queues.size(), 1U);
  EXPECT_EQ(std::get<QueueList>(rest.body).next_cursor, "");
}

TEST(QueuesTest, ComeInPages) {
  EngineHarness harness;
  for (const char* queue : {"a", "b", "c", "d", "e"}) {
    harness.EnqueueOk({.queue = queue});
  }
  harness.Send(Lease{.queues = {"only-waited-for"}, .wait = Millis(1000)});
  ListQueues command{.limit = 2};
  std::string names;
  size_t pages = 0;
  do {
    const Reply reply = harness.Call(command);
    ASSERT_TRUE(reply.status.ok()) << reply.status.message();
    const auto& list = std::get<QueueList>(reply.body);
    EXPECT_LE(list.queues.size(), 2U);
    for (const QueueView& queue : list.queues) {
      names += queue.name;
    }
    command.cursor = list.next_cursor;
    ++pages;
  } while (!command.cursor.empty());
  EXPECT_EQ(names, "abcde");
  EXPECT_EQ(pages, 3U);
  EXPECT_EQ(harness.ReasonOf(ListQueues{.cursor = "x"}), "invalid_cursor");
}

TEST(StatsTest, TheOtherQueuesAreWhatTheNamedOnesLeaveOfTheTotals) {
  EngineHarness harness;
  for (const char* queue : {"other", "a", "b", "c"}) {
    harness.EnqueueOk({.queue = queue});
    harness.EnqueueOk({.queue = queue, .due = DueAfter{Millis(1000)}});
  }
  ASSERT_EQ(harness.LeaseNow(1, "a").size(), 1U);
  ASSERT_EQ(harness.LeaseNow(1, "c").size(), 1U);
  const EngineFigures figures = harness.engine().Figures(2);
  ASSERT_EQ(figures.queues.size(), 2U);
  EXPECT_EQ(figures.queues[0].name, "a");
  EXPECT_EQ(figures.queues[1].name, "b");
  EXPECT_EQ(figures.other.name, "other");
  EXPECT_EQ(figures.other.scheduled, 2U);
  EXPECT_EQ(figures.other.ready, 1U);
  EXPECT_EQ(figures.other.leased, 1U);
  EXPECT_EQ(figures.totals.queues, 4U);
}

TEST(StatsTest, QueuesWithJobsAndPausedOnesAreNamedBeforeEmptyOnes) {
  EngineHarness harness;
  for (const char* queue : {"empty", "paused"}) {
    harness.EnqueueOk({.queue = queue});
    const std::vector<JobView> jobs = harness.LeaseNow(1, queue);
    ASSERT_EQ(jobs.size(), 1U);
    ASSERT_TRUE(harness.Call(Ack{*jobs[0].lease_token}).status.ok());
  }
  ASSERT_TRUE(harness.Call(Pause{.queue = "paused"}).status.ok());
  harness.EnqueueOk({.queue = "busy"});
  std::vector<std::string> names;
  for (const QueueView& queue : harness.engine().Figures(3).queues) {
    names.push_back(queue.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"paused", "busy", "empty"}));
  EXPECT_EQ(harness.engine().Figures(2).queues.back().name, "busy");
  EXPECT_EQ(harness.engine().Figures(2).queues.front().handed_out, 1U);
}

TEST(StatsTest, NextDueIsThatOfAJobAndNotTheEndOfALeaseOrAPause) {
  EngineHarness harness;
  EXPECT_EQ(harness.engine().stats().next_due, std::nullopt);
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  ASSERT_TRUE(harness.Call(Pause{.queue = "default", .duration = Millis(5000)}).status.ok());
  EXPECT_EQ(harness.engine().stats().next_due, std::nullopt);
  const JobView far = harness.EnqueueOk(In(Millis(7'200'000)));
  EXPECT_EQ(harness.engine().stats().next_due, far.due);
  const JobView near = harness.EnqueueOk(In(Millis(30'000)));
  EXPECT_EQ(harness.engine().stats().next_due, near.due);
  const Reply leased = harness.Call(LeaseJob{.job = near.id});
  EXPECT_EQ(harness.engine().stats().next_due, far.due);
  ASSERT_TRUE(
      harness.Call(GiveBack{*std::get<Leased>(leased.body).jobs.at(0).lease_token}).status.ok());
  EXPECT_EQ(harness.engine().stats().next_due, near.due);
  ASSERT_TRUE(harness.Call(Cancel{near.id}).status.ok());
  EXPECT_EQ(harness.engine().stats().next_due, far.due);
}

TEST(StatsTest, NextDueIsWhatItsJobWasPromisedAfterAClockThatWasAhead) {
  EngineHarness harness;
  harness.clock().StepWall(kHour);
  harness.EnqueueOk(In(Millis(0)));
  harness.EnqueueOk(In(Millis(0)));  // the mark is an hour ahead
  ASSERT_EQ(WorkOff(&harness, "default"), 2U);
  harness.clock().StepWall(-kHour);
  harness.EnqueueOk(In(Millis(60'000)));
  const JobView near = harness.EnqueueOk(In(Millis(1000)));
  EXPECT_EQ(harness.engine().stats().next_due, near.due);
  harness.Wait(Millis(1001));
  EXPECT_EQ(harness.engine().stats().next_due, near.due + Millis(59'000)) << "it is ready";
}

TEST(StatsTest, NextDueOfADelayIsToldByTheWallClockAsItStands) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAt{harness.now().wall - Millis(1'800'000)}});
  harness.EnqueueOk(In(Millis(60'000)));
  harness.clock().StepWall(-kHour);
  harness.Turn();
  EXPECT_EQ(harness.engine().stats().next_due, harness.now().wall + Millis(60'000));
}

TEST(StatsTest, NextDueOfADelayIsToldWhereTheWallClockWasSetForwardBeyondIt) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(60'000)));
  harness.clock().StepWall(kHour);
  harness.Turn();
  EXPECT_EQ(harness.engine().stats().next_due, harness.now().wall + Millis(60'000));
  harness.EnqueueOk(In(Millis(1000)));
  EXPECT_EQ(harness.engine().stats().next_due, harness.now().wall + Millis(1000));
}

TEST(StatsTest, NextDueOfAJobThatCameSinceTheWallClockWasSetBackIsToldBeforeTheNextTurn) {
  EngineHarness harness;
  harness.clock().StepWall(-kHour);
  const WallTime due = harness.now().wall + Millis(1000);
  harness.Send(Enqueue{{{.due = DueAt{due}}}});
  harness.CommitAll();
  EXPECT_EQ(harness.engine().stats().next_due, due);
}

TEST(StatsTest, NextDueIsFoundBehindManyJobsThatAreReadyAndKeyedBehindAClockThatWasSetBack) {
  EngineHarness harness;
  harness.Send(Enqueue{std::vector<JobSpec>(1000, In(Millis(0)))});
  harness.CommitAll();
  harness.EnqueueOk(In(Millis(0)));
  harness.EnqueueOk(In(Millis(60'000)));
  harness.clock().StepWall(-kHour);
  harness.Turn();
  EXPECT_EQ(harness.engine().stats().next_due, harness.now().wall + Millis(60'000));
}

}  // namespace
}  // namespace delayd::engine
