#include "base/limits.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

JobId Buried(EngineHarness* harness, const std::string& payload = "p") {
  const JobView job = harness->EnqueueOk(In(Millis(0), payload));
  const LeaseToken token = *harness->LeaseNow().at(0).lease_token;
  EXPECT_TRUE(harness->Call(Bury{.token = token, .error = "no use"}).status.ok());
  harness->Wait(Millis(1));
  return job.id;
}

uint64_t KickedCount(EngineHarness* harness, uint32_t count) {
  const Reply reply = harness->Call(KickQueue{.queue = "default", .count = count});
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  return std::get<Kicked>(reply.body).count;
}

TEST(KickTest, ADeadJobIsReadyAgainWithAllItsAttempts) {
  EngineHarness harness;
  const JobId id = Buried(&harness);
  const Reply reply = harness.Call(Kick{id});
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  const JobView& job = *std::get<Indirect<JobView>>(reply.body);
  EXPECT_EQ(job.state, JobState::kReady);
  EXPECT_EQ(job.attempt, 0U);
  EXPECT_EQ(job.last_error, "no use");
  EXPECT_EQ(job.kicks, 1U);
  harness.Restart();
  EXPECT_EQ(harness.LeaseNow().at(0).id, id);
}

TEST(KickTest, AScheduledJobIsReadyNow) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(std::chrono::hours(5)));
  ASSERT_TRUE(harness.Call(Kick{job.id}).status.ok());
  EXPECT_EQ(harness.LeaseNow().at(0).id, job.id);
}

TEST(KickTest, ReadyAndLeasedJobsAreRefusedByState) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  EXPECT_EQ(harness.ReasonOf(Kick{job.id}), "ready");
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  EXPECT_EQ(harness.ReasonOf(Kick{job.id}), "leased");
  EXPECT_EQ(harness.ReasonOf(Kick{JobId{4711}}), "not_found");
}

TEST(KickTest, P1ARefusalWaitsForTheKickItRestsOn) {
  EngineHarness harness;
  const JobId id = Buried(&harness);
  harness.Send(Kick{id});
  const RequestId second = harness.Send(Kick{id});
  EXPECT_FALSE(harness.HasReply(second)) << "after a power cut the job is dead";
  harness.CommitAll();
  EXPECT_EQ(harness.Take(second).status.reason(), "ready");
}

TEST(KickTest, ByNumberTakesTheOldestDeadFirstAndLeavesScheduledOnesAlone) {
  EngineHarness harness;
  const JobId first = Buried(&harness);
  Buried(&harness);
  harness.EnqueueOk(In(std::chrono::hours(1)));
  EXPECT_EQ(KickedCount(&harness, 1), 1U);
  EXPECT_EQ(harness.LeaseNow(10).at(0).id, first);
  EXPECT_EQ(KickedCount(&harness, 5), 1U);
}

TEST(KickTest, P9ByNumberGoesOnPastDamagedJobs) {
  EngineHarness harness;
  for (int i = 0; i < 5; ++i) {
    Buried(&harness);
  }
  const JobId good = Buried(&harness, "good");
  std::vector<std::string> keys;
  ASSERT_TRUE(harness.store()
                  .Scan(storage::Table::kDead,
                        std::string(1, '\0'),
                        {},
                        [&keys](std::string_view key, std::string_view) {
                          keys.emplace_back(key);
                          return keys.size() < 5;
                        })
                  .ok());
  storage::Batch damage;
  for (const std::string& key : keys) {
    damage.Put(storage::Table::kDead, key, "rot");
  }
  ASSERT_TRUE(harness.store().Commit(damage).ok());
  EXPECT_EQ(KickedCount(&harness, 2), 1U);
  EXPECT_EQ(harness.engine().TakeIncidents().size(), 5U);
  EXPECT_EQ(harness.LeaseNow(10).at(0).id, good);
  EXPECT_EQ(KickedCount(&harness, 2), 0U);  // and no scheduled ones: the damaged lie there still
  EXPECT_EQ(harness.engine().TakeIncidents().size(), 5U);  // all of them, and from the first
}

TEST(KickTest, ByNumberTakesTheSoonestScheduledWhenNoneIsDead) {
  EngineHarness harness;
  harness.EnqueueOk(In(std::chrono::hours(30)));
  const JobView soon = harness.EnqueueOk(In(std::chrono::hours(20)));
  EXPECT_EQ(KickedCount(&harness, 1), 1U);
  const auto leased = harness.LeaseNow(10);
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].id, soon.id);
}

TEST(KickTest, ByNumberSeesChangesThatAreNotDurableYet) {
  EngineHarness harness;
  harness.EnqueueOk(In(std::chrono::hours(3)));
  const RequestId enqueue = harness.Send(Enqueue{{In(std::chrono::hours(2), "soonest")}});
  const RequestId kick = harness.Send(KickQueue{.queue = "default", .count = 1});
  EXPECT_FALSE(harness.HasReply(kick));
  harness.Turn();
  harness.Take(enqueue);
  EXPECT_EQ(std::get<Kicked>(harness.Take(kick).body).count, 1U);
  EXPECT_EQ(harness.LeaseNow().at(0).payload, "soonest");
}

TEST(PeekTest, ShowsTheNextOfEachStateWithItsPayload) {
  EngineHarness harness;
  const auto peek = [&](Peek::Which which) {
    return harness.Call(Peek{.queue = "default", .which = which});
  };
  EXPECT_EQ(peek(Peek::Which::kReady).status.reason(), "not_found");
  Buried(&harness, "dead");
  harness.EnqueueOk({.due = DueAfter{}, .payload = "ready"});
  harness.EnqueueOk({.due = DueAfter{}, .payload = "urgent", .priority = 1});
  harness.EnqueueOk(In(std::chrono::hours(9), "later"));
  harness.EnqueueOk(In(std::chrono::hours(8), "sooner"));
  const auto payload = [&](Peek::Which which) {
    return std::get<Indirect<JobView>>(peek(which).body)->payload;
  };
  EXPECT_EQ(payload(Peek::Which::kReady), "urgent");
  EXPECT_EQ(payload(Peek::Which::kDelayed), "sooner");
  EXPECT_EQ(payload(Peek::Which::kBuried), "dead");
}

// It is scheduled until a turn has made it ready, as in a list.
TEST(PeekTest, SeesWhatHasFallenDueOnDiskSinceTheLastTurn) {
  EngineHarness harness(EngineOptions{.memory_jobs_max = 16});
  for (int i = 0; i < 64; ++i) {
    harness.EnqueueOk(In(Millis(10)));
  }
  harness.Wait(Millis(20));  // more are ready than there is room for: the queue lags
  const JobView job = harness.EnqueueOk(In(Millis(100)));
  harness.Pass(Millis(101));
  const RequestId delayed = harness.Send(Peek{"default", Peek::Which::kDelayed});
  const RequestId kicked = harness.Send(KickQueue{.queue = "default", .count = 1});
  harness.CommitAll();
  const Reply shown = harness.Take(delayed);
  ASSERT_TRUE(shown.status.ok()) << shown.status.message();
  EXPECT_EQ(std::get<Indirect<JobView>>(shown.body)->id, job.id);
  EXPECT_EQ(std::get<Kicked>(harness.Take(kicked).body).count, 1U);
}

TEST(LeaseJobTest, HandsOutThisVeryJobBeforeItsTime) {
  EngineHarness harness({.horizon = Millis(1000)});
  const JobView far = harness.EnqueueOk(In(std::chrono::hours(9), "far"));
  const Reply reply = harness.Call(LeaseJob{.job = far.id});
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  const JobView& job = std::get<Leased>(reply.body).jobs.at(0);
  EXPECT_EQ(job.payload, "far");
  EXPECT_EQ(harness.ReasonOf(LeaseJob{.job = far.id}), "leased");
  EXPECT_TRUE(harness.Call(Ack{*job.lease_token}).status.ok());
}

TEST(LeaseJobTest, ADeadJobIsPendingFromThenOn) {
  EngineHarness harness;
  const JobId id = Buried(&harness);
  const Reply reply = harness.Call(LeaseJob{.job = id});
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  harness.Restart();
  EXPECT_EQ(harness.ShowOk(id).state, JobState::kReady);
}

TEST(LeaseJobTest, P2AJobGivenBackBeforeItsTimeWaitsForIt) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(5000)));
  const Reply reply = harness.Call(LeaseJob{.job = job.id});
  const LeaseToken token = *std::get<Leased>(reply.body).jobs.at(0).lease_token;
  ASSERT_TRUE(harness.Call(GiveBack{token}).status.ok());
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kScheduled);
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(Millis(5001));
  EXPECT_EQ(harness.LeaseNow().at(0).attempt, 1U);
  EXPECT_EQ(harness.ReasonOf(GiveBack{token}), "lease_lost");
}

TEST(LeaseJobTest, AJobThatWasTakenInTimeAndGivenBackIsNotTooLate) {
  EngineHarness harness;
  JobSpec spec = In(Millis(0));
  spec.expires_after = Millis(300);
  harness.EnqueueOk(spec);
  const LeaseToken token = *harness.LeaseNow().at(0).lease_token;
  harness.Wait(Millis(1000));
  ASSERT_TRUE(harness.Call(GiveBack{token}).status.ok());
  harness.Wait(Millis(300));
  EXPECT_EQ(harness.LeaseNow().at(0).attempt, 1U);
}

// Neither a lease that runs out nor a nack takes back what was promised.
TEST(LeaseJobTest, P2AJobThatFailsBeforeItsTimeWaitsForIt) {
  EngineHarness harness;
  for (const bool absolute : {false, true}) {
    const Millis hour = std::chrono::hours(1);
    const JobView job = harness.EnqueueOk(
        {.due = absolute ? DueSpec(DueAt{harness.now().wall + hour}) : DueSpec(DueAfter{hour})});
    harness.Call(LeaseJob{.job = job.id, .lease = Millis(200)});
    harness.Wait(Millis(201));
    const Reply reply = harness.Call(LeaseJob{.job = job.id});
    const JobView& again = std::get<Leased>(reply.body).jobs.at(0);
    EXPECT_EQ(again.attempt, 2U);
    ASSERT_TRUE(harness.Call(Nack{.token = *again.lease_token}).status.ok());
    const JobView waiting = harness.ShowOk(job.id);
    EXPECT_EQ(waiting.state, JobState::kScheduled);
    EXPECT_EQ(waiting.due, job.due);
    harness.Restart();
    EXPECT_EQ(harness.ShowOk(job.id).due, job.due);
    harness.Wait(hour - Millis(300));
    EXPECT_TRUE(harness.LeaseNow().empty());
    harness.Wait(Millis(301));
    const JobView due = harness.LeaseNow().at(0);
    EXPECT_EQ(due.id, job.id);
    harness.Call(Ack{*due.lease_token});
  }
}

TEST(LeaseJobTest, ADelayThatItsWorkerAsksForCountsBeforeItsTimeToo) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(std::chrono::hours(1)));
  const Reply reply = harness.Call(LeaseJob{.job = job.id});
  const LeaseToken token = *std::get<Leased>(reply.body).jobs.at(0).lease_token;
  harness.Call(Nack{.token = token, .delay = Millis(0)});
  EXPECT_EQ(harness.LeaseNow().at(0).id, job.id);
}

TEST(LeaseJobTest, WhatIsDueBeforeItsNextAttemptWaitsForThat) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(100)));
  const Reply reply = harness.Call(LeaseJob{.job = job.id});
  harness.Call(Nack{.token = *std::get<Leased>(reply.body).jobs.at(0).lease_token});
  EXPECT_GT(harness.ShowOk(job.id).due, job.due);
}

// A connection that held a hundred thousand gives them back as they are written.
TEST(LeaseJobTest, P10JobsThatAreGivenBackAreBoundedAsLeasesThatEnd) {
  EngineHarness harness;
  std::vector<LeaseToken> held;
  while (held.size() < limits::kOwnWorkMax) {
    harness.Call(Enqueue{std::vector<JobSpec>(1000, In(Millis(0)))});
    for (const JobView& job : harness.LeaseNow(1000)) {
      held.push_back(*job.lease_token);
    }
  }
  for (const LeaseToken& token : held) {
    ASSERT_FALSE(harness.engine().has_own_work_enough());
    harness.Send(GiveBack{token});
  }
  EXPECT_TRUE(harness.engine().has_own_work_enough());
  harness.CommitAll();
  EXPECT_FALSE(harness.engine().has_own_work_enough());
}

TEST(NackTest, WithoutCountingNeverUsesTheAttemptsUp) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}, .max_attempts = 1});
  for (int i = 0; i < 3; ++i) {
    const LeaseToken token = *harness.LeaseNow().at(0).lease_token;
    const Reply reply = harness.Call(
        Nack{.token = token, .delay = Millis(0), .priority = 7, .counts_as_attempt = false});
    EXPECT_EQ(std::get<Indirect<JobView>>(reply.body)->state, JobState::kReady);
    EXPECT_EQ(std::get<Indirect<JobView>>(reply.body)->priority, 7U);
  }
  const JobView job = harness.LeaseNow().at(0);
  EXPECT_EQ(job.attempt, 1U);
  EXPECT_EQ(job.releases, 3U);
  EXPECT_EQ(job.reserves, 4U);
}

TEST(PeekTest, OfOneQueueSeesNothingOfChangesUnderWayInAnother) {
  EngineHarness harness;
  harness.EnqueueOk({.queue = "a", .due = DueAfter{Millis(9000)}, .payload = "later"});
  harness.EnqueueOk({.queue = "a", .payload = "to be buried"});
  harness.EnqueueOk({.queue = "b", .payload = "to be buried"});
  const LeaseToken a = *harness.LeaseNow(1, "a").at(0).lease_token;
  const LeaseToken b = *harness.LeaseNow(1, "b").at(0).lease_token;
  ASSERT_TRUE(harness.Call(Bury{.token = a}).status.ok());
  harness.Send(Bury{.token = b});
  harness.Send(Enqueue{{{.queue = "b", .due = DueAfter{Millis(1000)}, .payload = "sooner"}}});
  const RequestId delayed = harness.Send(Peek{.queue = "a", .which = Peek::Which::kDelayed});
  const RequestId buried = harness.Send(Peek{.queue = "a", .which = Peek::Which::kBuried});
  harness.CommitAll();
  EXPECT_EQ(std::get<Indirect<JobView>>(harness.Take(delayed).body)->payload, "later");
  EXPECT_EQ(std::get<Indirect<JobView>>(harness.Take(buried).body)->queue, "a");
}

}  // namespace
}  // namespace delayd::engine
