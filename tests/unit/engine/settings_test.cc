#include "daemon/engine/rate_bucket.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

Configure Only(const QueueSettings& settings) {
  return {.defaults = {}, .queues = {{"default", settings}}};
}

TEST(SettingsTest, AShorterRetentionCountsForWhatHasFinishedToo) {
  EngineHarness harness;
  harness.EnqueueOk(Keyed("k"));
  ASSERT_TRUE(harness.Call(Cancel{KeyRef{"default", "k"}}).status.ok());
  EXPECT_EQ(harness.ReasonOf(Cancel{KeyRef{"default", "k"}}), "finished");
  ASSERT_TRUE(harness.Call(Configure{.defaults = {.key_retention = Millis(1000)}}).status.ok());
  harness.Wait(Millis(limits::kTrimIntervalMsMin + 1000));
  EXPECT_EQ(harness.Call(Show{KeyRef{"default", "k"}}).status.code(), StatusCode::kNotFound);
}

TEST(SettingsTest, AQueueThatOnlyAWorkerKnewMayGoWhileItsSettingsChange) {
  EngineHarness harness;
  const RequestId waiting = harness.Send(Lease{.queues = {"q"}, .wait = Millis(1000)});
  harness.Send(Configure{});
  harness.Send(Abandon{waiting});
  harness.Turn();
  harness.EnqueueOk({.queue = "other"});
  EXPECT_TRUE(harness.LeaseNow(1, "q").empty());
  EXPECT_EQ(harness.LeaseNow(1, "other").size(), 1U);
}

TEST(SettingsTest, AConcurrencyCapHoldsJobsBackUntilALeaseEnds) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(Only({.concurrency = 2})).status.ok());
  for (int i = 0; i < 3; ++i) {
    harness.EnqueueOk(In(Millis(0)));
  }
  const auto leased = harness.LeaseNow(10);
  ASSERT_EQ(leased.size(), 2U);
  const RequestId waiting = harness.Send(Lease{.queues = {"default"}, .wait = Millis(60'000)});
  harness.Turn();
  EXPECT_FALSE(harness.HasReply(waiting));
  ASSERT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  harness.Turn();
  EXPECT_EQ(std::get<Leased>(harness.Take(waiting).body).jobs.size(), 1U);
}

// A worker that waits because of the old cap must not wait as long as that one would have it.
TEST(SettingsTest, P3AWiderRateCapCountsAtOnceForThoseWhoWait) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(Only({.rate = {.count = 1, .per = std::chrono::hours(1)}})).status.ok());
  for (int i = 0; i < 3; ++i) {
    harness.EnqueueOk(In(Millis(0)));
  }
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
  const Lease wait{.queues = {"default"}, .wait = Millis(60'000)};
  const RequestId first = harness.Send(wait);
  const RequestId second = harness.Send(wait);
  harness.Turn();
  ASSERT_TRUE(harness.Call(Only({.rate = {.count = 10, .per = Millis(1000)}})).status.ok());
  harness.Wait(Millis(99));
  EXPECT_FALSE(harness.HasReply(first)) << "a change of the cap gives no tokens";
  harness.Wait(Millis(1));
  EXPECT_EQ(std::get<Leased>(harness.Take(first).body).jobs.size(), 1U);
  harness.Wait(Millis(99));
  EXPECT_FALSE(harness.HasReply(second));
  harness.Wait(Millis(1));
  EXPECT_EQ(std::get<Leased>(harness.Take(second).body).jobs.size(), 1U);
}

TEST(SettingsTest, ARateCapHandsOutInItsOwnTimeAndTellsWhenToWake) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(Only({.rate = {.count = 2, .per = Millis(1000)}})).status.ok());
  for (int i = 0; i < 3; ++i) {
    harness.EnqueueOk(In(Millis(0)));
  }
  EXPECT_EQ(harness.LeaseNow(10).size(), 1U);
  const RequestId waiting = harness.Send(Lease{.queues = {"default"}, .wait = Millis(60'000)});
  harness.Turn();
  EXPECT_EQ(harness.UntilNextEvent(), Millis(500));
  harness.Wait(Millis(499));
  EXPECT_FALSE(harness.HasReply(waiting));
  harness.Wait(Millis(1));
  EXPECT_EQ(std::get<Leased>(harness.Take(waiting).body).jobs.size(), 1U);
}

TEST(SettingsTest, AWiderCapServesWhoWaits) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(Only({.concurrency = 1})).status.ok());
  harness.EnqueueOk(In(Millis(0)));
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_EQ(harness.LeaseNow(10).size(), 1U);
  const RequestId waiting = harness.Send(Lease{.queues = {"default"}, .wait = Millis(60'000)});
  ASSERT_TRUE(harness.Call(Only({})).status.ok());
  EXPECT_EQ(std::get<Leased>(harness.Take(waiting).body).jobs.size(), 1U);
}

TEST(SettingsTest, LeaseAndAttemptsOfNewJobsAreTheirQueuesOwn) {
  EngineHarness harness;
  ASSERT_TRUE(harness.Call(Only({.lease = Millis(1234), .max_attempts = 3})).status.ok());
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  EXPECT_EQ(job.lease, Millis(1234));
  EXPECT_EQ(job.max_attempts, 3U);
}

TEST(RateBucketTest, NeverGivesMoreThanItsRateAndItsBurst) {
  RateBucket bucket;
  BootTime now = BootFromMillis(1'000'000);
  bucket.SetCap({.count = 3, .per = Millis(7), .burst = 2}, now);
  uint64_t taken = 0;
  for (int ms = 0; ms <= 7000; ++ms) {
    while (bucket.MayTake(now)) {
      bucket.Take(now);
      ++taken;
    }
    EXPECT_EQ(bucket.NextTake(bucket.NextTake(now)), bucket.NextTake(now));
    EXPECT_FALSE(bucket.MayTake(bucket.NextTake(now) - Millis(1)) &&
                 bucket.NextTake(now) > now + Millis(1));
    now += Millis(1);
  }
  EXPECT_EQ(taken, 3002U);
}

uint64_t TakeAll(RateBucket* bucket, BootTime now) {
  uint64_t taken = 0;
  for (; bucket->MayTake(now); ++taken) {
    bucket->Take(now);
  }
  return taken;
}

TEST(RateBucketTest, GivesAllOfItsRateWhereATokenIsNoWholeNumberOfMilliseconds) {
  for (const uint32_t count : {3U, 100U, 300U, 700U, 999U, 1000U, 1001U, 5000U}) {
    RateBucket bucket;
    BootTime now = BootFromMillis(5);
    bucket.SetCap({.count = count, .per = Millis(1000), .burst = 1}, now);
    uint64_t taken = 0;
    for (int ms = 0; ms < 10'000; ++ms, now += Millis(1)) {
      const uint64_t at_once = TakeAll(&bucket, now);
      EXPECT_LE(at_once, (count + 999) / 1000) << count;
      taken += at_once;
    }
    EXPECT_GE(taken, 10 * count) << count;
    EXPECT_LE(taken, 10 * count + (count + 999) / 1000) << count;
  }
}

TEST(RateBucketTest, IsFullAfterALongRestAndNotMore) {
  RateBucket bucket;
  BootTime now = BootFromMillis(5);
  bucket.SetCap({.count = 1'000'000, .per = Millis(86'400'000), .burst = 3}, now);
  now += std::chrono::hours(24 * 36500);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(bucket.MayTake(now));
    bucket.Take(now);
  }
  EXPECT_FALSE(bucket.MayTake(now));
}

TEST(RateBucketTest, AnotherCapFindsTheTokensThatWereThere) {
  RateBucket bucket;
  BootTime now = BootFromMillis(5);
  bucket.SetCap({.count = 10, .per = Millis(1000), .burst = 10}, now);
  EXPECT_EQ(TakeAll(&bucket, now), 10U);
  // Empty it stays, whatever the cap, or each reload would give a burst.
  bucket.SetCap({.count = 20, .per = Millis(1000), .burst = 20}, now);
  EXPECT_FALSE(bucket.MayTake(now));
  now += Millis(500);
  // Ten tokens, in other units.
  bucket.SetCap({.count = 1, .per = Millis(60'000), .burst = 50}, now);
  EXPECT_EQ(TakeAll(&bucket, now), 10U);
  now += Millis(300'000);
  // Five, of which the new cap holds two.
  bucket.SetCap({.count = 1, .per = Millis(1), .burst = 2}, now);
  EXPECT_EQ(TakeAll(&bucket, now), 2U);
}

TEST(RateBucketTest, IsFullWhereThereWasNoCap) {
  RateBucket bucket;
  const BootTime now = BootFromMillis(5);
  bucket.SetCap({.count = 1, .per = Millis(1000), .burst = 3}, now);
  EXPECT_EQ(TakeAll(&bucket, now), 3U);
  bucket.SetCap({}, now);
  EXPECT_TRUE(bucket.MayTake(now));
  bucket.SetCap({.count = 1, .per = Millis(1000), .burst = 4}, now);
  EXPECT_EQ(TakeAll(&bucket, now), 4U);
}

TEST(TouchTest, RepeatsTheDelayOfTheEnqueueWhateverMovedTheJobSince) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(30'000)));
  ASSERT_TRUE(harness.Call(Reschedule{.job = job.id, .due = DueAfter{Millis(500)}}).status.ok());
  harness.Wait(Millis(400));
  harness.Restart();
  const Reply reply = harness.Call(Touch{KeyRef{"default", "k"}});
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  EXPECT_EQ(std::get<Indirect<JobView>>(reply.body)->due, harness.now().wall + Millis(30'000));
  harness.Wait(Millis(30'000));
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(Millis(1));
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(TouchTest, GivesADefiniteAnswerWhenItCannot) {
  EngineHarness harness;
  const JobView at = harness.EnqueueOk({.due = DueAt{harness.now().wall + Millis(9000)}});
  EXPECT_EQ(harness.ReasonOf(Touch{at.id}), "no_delay");
  harness.EnqueueOk(Keyed("k", Millis(0)));
  const auto leased = harness.LeaseNow();
  EXPECT_EQ(harness.ReasonOf(Touch{KeyRef{"default", "k"}}), "leased");
  ASSERT_TRUE(harness.Call(Ack{*leased.at(0).lease_token}).status.ok());
  EXPECT_EQ(harness.ReasonOf(Touch{KeyRef{"default", "k"}}), "finished");
  EXPECT_EQ(harness.ReasonOf(Touch{KeyRef{"default", "other"}}), "not_found");
}

// As an enqueue with that delay is: no cursor of a list leads to a later row.
TEST(TouchTest, ADelayThatWouldEndAfter2286IsRefused) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(limits::kDelayMsMax)));
  const WallTime last = WallFromMillis(limits::kWallMsMax - limits::kDelayMsMax);
  harness.clock().StepWall(last + Millis(1) - harness.now().wall);
  const Status refused = harness.Call(Touch{job.id}).status;
  EXPECT_EQ(refused.reason(), "invalid_delay");
  EXPECT_EQ(refused.message(), "job 1: the delay ends after 2286; use a shorter one");
  harness.clock().StepWall(Millis(-1));
  const Reply touched = harness.Call(Touch{job.id});
  ASSERT_TRUE(touched.status.ok()) << touched.status.message();
  EXPECT_EQ(std::get<Indirect<JobView>>(touched.body)->due, WallFromMillis(limits::kWallMsMax));
}

TEST(StoryTest, ARecordRemembersTheLatestStepsAndWhoTookThem) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  for (int i = 0; i < 12; ++i) {
    const Reply leased = harness.Call(Lease{.queues = {"default"}, .client = "worker:7"});
    const LeaseToken token = *std::get<Leased>(leased.body).jobs.at(0).lease_token;
    ASSERT_TRUE(harness.Call(Nack{.token = token, .delay = Millis(0), .error = std::to_string(i)})
                    .status.ok());
  }
  harness.Restart();
  const JobView shown = harness.ShowOk(job.id);
  ASSERT_EQ(shown.history.size(), limits::kJobEventsMax);
  EXPECT_EQ(shown.history.back().kind, JobEvent::Kind::kNacked);
  EXPECT_EQ(shown.history.back().who, "worker:7");
  EXPECT_EQ(shown.history.back().what, "11");
}

}  // namespace
}  // namespace delayd::engine
