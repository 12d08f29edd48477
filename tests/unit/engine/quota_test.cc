// How many jobs a queue and a user may have.
#include <gmock/gmock.h>

#include "daemon/engine/engine_figures.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

Configure AtMost(uint32_t jobs) {
  return {.defaults = {}, .queues = {{"default", {.max_jobs = jobs}}}};
}

Enqueue By(const std::string& user, uint64_t max, size_t count = 1) {
  return {
      .jobs = std::vector<JobSpec>(count, In(Millis(1000))), .user = user, .user_jobs_max = max};
}

uint64_t JobsOf(EngineHarness& harness, const std::string& user) {
  for (const auto& [name, jobs] : harness.engine().Figures(100).users) {
    if (name == user) {
      return jobs;
    }
  }
  return 0;
}

TEST(QuotaTest, AFullQueueTakesNoNewJobUntilOneIsDone) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(AtMost(2)).status.ok());
  const JobView first = harness.EnqueueOk(In(Millis(1000)));
  harness.EnqueueOk(In(Millis(1000)));
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(1000))}}), "queue_full");
  EXPECT_TRUE(harness.Call(Enqueue{{{.queue = "other"}}}).status.ok()) << "another queue has none";
  ASSERT_TRUE(harness.Call(Cancel{first.id}).status.ok());
  EXPECT_TRUE(harness.Call(Enqueue{{In(Millis(1000))}}).status.ok());
  EXPECT_EQ(harness.engine().stats().quota_refusals, 1U);
}

TEST(QuotaTest, P1ARefusalWaitsForTheJobsThatTakeTheRoom) {
  for (const std::string_view reason : {"queue_full", "user_full"}) {
    EngineHarness harness;
    ASSERT_TRUE(harness.Call(AtMost(reason == "queue_full" ? 1 : 0)).status.ok());
    harness.Send(By("uid:1", 1));
    const RequestId refused = harness.Send(By(reason == "queue_full" ? "" : "uid:1", 1));
    EXPECT_FALSE(harness.HasReply(refused)) << reason;
    harness.CommitAll();
    EXPECT_EQ(harness.Take(refused).status.reason(), reason);
  }
}

TEST(QuotaTest, DeadJobsTakeRoomAsWell) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(AtMost(1)).status.ok());
  JobSpec buried = In(Millis(0));
  buried.buried = true;
  harness.EnqueueOk(buried);
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(1000))}}), "queue_full");
}

TEST(QuotaTest, ARetryOfWhatIsStoredIsNoNewJob) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(AtMost(1)).status.ok());
  const JobView job = harness.EnqueueOk(Keyed("k"));
  const Reply again = harness.Call(Enqueue{{Keyed("k")}, "uid:1", 1});
  ASSERT_TRUE(again.status.ok());
  EXPECT_EQ(std::get<Enqueued>(again.body).items[0].job.id, job.id);
  EXPECT_EQ(JobsOf(harness, "uid:1"), 0U);
}

TEST(QuotaTest, ABatchThatIsLargerThanTheRoomIsToldHowManyFit) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(AtMost(3)).status.ok());
  harness.EnqueueOk(In(Millis(1000)));
  const Enqueue three = By("", 0, 3);
  EXPECT_THAT(harness.Call(three).status.message(),
              ::testing::HasSubstr("send at most 2 at once, "));
  EXPECT_THAT(harness.Call(By("uid:1", 1, 2)).status.message(),
              ::testing::HasSubstr("send at most 1 at once, "));
  ASSERT_TRUE(harness.Call(By("", 0, 2)).status.ok());
  EXPECT_THAT(harness.Call(By("", 0)).status.message(),
              ::testing::Not(::testing::HasSubstr("at once")));
}

TEST(QuotaTest, P8ABatchThatDoesNotFitIsRefusedAsAWhole) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(AtMost(3)).status.ok());
  harness.EnqueueOk(In(Millis(1000)));
  EXPECT_EQ(harness.ReasonOf(By("", 0, 3)), "queue_full");
  EXPECT_EQ(harness.ReasonOf(By("uid:1", 1, 2)), "user_full");
  EXPECT_EQ(harness.engine().stats().scheduled, 1U);
  EXPECT_TRUE(harness.Call(By("", 0, 2)).status.ok());
}

TEST(QuotaTest, ANewQuotaAppliesToNewJobsAndLeavesTheOthers) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(1000)));
  harness.EnqueueOk(In(Millis(1000)));
  ASSERT_TRUE(harness.Call(AtMost(1)).status.ok());
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(1000))}}), "queue_full");
  EXPECT_EQ(harness.engine().stats().scheduled, 2U);
  ASSERT_TRUE(harness.Call(AtMost(0)).status.ok());
  EXPECT_TRUE(harness.Call(Enqueue{{In(Millis(1000))}}).status.ok());
}

TEST(QuotaTest, AUserHasNoMoreThanItsQuotaOverAllQueues) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(By("uid:1", 2)).status.ok());
  ASSERT_TRUE(harness.Call(Enqueue{{{.queue = "other"}}, "uid:1", 2}).status.ok());
  EXPECT_EQ(harness.ReasonOf(By("uid:1", 2)), "user_full");
  EXPECT_TRUE(harness.Call(By("uid:2", 2)).status.ok()) << "another user has its own";
  EXPECT_TRUE(harness.Call(By("uid:1", 0)).status.ok()) << "and who has no limit is counted";
  EXPECT_EQ(JobsOf(harness, "uid:1"), 3U);
}

TEST(QuotaTest, HoweverAJobEndsItsUserHasRoomAgain) {
  EngineHarness harness;
  std::vector<JobId> ids;
  for (const JobSpec& spec : {In(Millis(0)), In(Millis(0)), In(Millis(5000))}) {
    const Reply reply = harness.Call(Enqueue{{spec}, "uid:1", 3});
    ids.push_back(std::get<Enqueued>(reply.body).items[0].job.id);
  }
  const auto leased = harness.LeaseNow(2);
  ASSERT_EQ(leased.size(), 2U);
  ASSERT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  EXPECT_EQ(JobsOf(harness, "uid:1"), 2U);
  ASSERT_TRUE(harness.Call(Bury{.token = *leased[1].lease_token}).status.ok());
  EXPECT_EQ(JobsOf(harness, "uid:1"), 2U) << "a dead job is stored";
  ASSERT_TRUE(harness.Call(Cancel{leased[1].id}).status.ok());
  ASSERT_TRUE(harness.Call(Cancel{ids[2]}).status.ok());
  EXPECT_EQ(JobsOf(harness, "uid:1"), 0U);
}

TEST(QuotaTest, WhatAUserHasIsKnownAfterARestart) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(By("uid:1", 9, 2)).status.ok());
  const Reply other = harness.Call(By("token:shop", 9));
  const JobId id = std::get<Enqueued>(other.body).items[0].job.id;
  harness.Send(By("uid:1", 9));  // never committed
  harness.Restart();
  EXPECT_EQ(JobsOf(harness, "uid:1"), 2U);
  EXPECT_EQ(harness.ReasonOf(By("uid:1", 2)), "user_full");
  ASSERT_TRUE(harness.Call(Cancel{id}).status.ok());
  harness.Restart();
  EXPECT_EQ(JobsOf(harness, "token:shop"), 0U);
  EXPECT_EQ(JobsOf(harness, "uid:1"), 2U);
}

TEST(FiguresTest, MonitoringIsToldOfSoManyQueuesAndUsersAndOfTheSumOfTheRest) {
  EngineHarness harness;
  for (const std::string name : {"a", "b", "c"}) {
    ASSERT_TRUE(
        harness.Call(Enqueue{{{.queue = name}, {.queue = name}}, "user " + name}).status.ok());
  }
  harness.Send(Lease{.queues = {"only-waited-for"}, .wait = Millis(1000)});
  const EngineFigures figures = harness.engine().Figures(2);
  ASSERT_EQ(figures.queues.size(), 2U);
  EXPECT_EQ(figures.queues[1].name, "b");
  EXPECT_EQ(figures.other.ready, 2U);
  ASSERT_EQ(figures.users.size(), 2U);
  EXPECT_EQ(figures.other_users, 2U);
  EXPECT_EQ(harness.engine().Figures(9).queues.size(), 3U) << "no job was ever put into the fourth";
}

}  // namespace
}  // namespace delayd::engine
