#include <algorithm>
#include <vector>

#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

TEST(TimeTest, P2NeverBeforeTheDueTime) {
  EngineHarness harness;
  harness.EnqueueOk(In(1000ms));
  for (int i = 0; i < 1001; ++i) {
    ASSERT_TRUE(harness.LeaseNow().empty()) << i;
    harness.Wait(1ms);
  }
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(TimeTest, StepsOfTheWallClockDoNotMoveRelativeJobs) {
  EngineHarness harness;
  harness.EnqueueOk(In(10'000ms));
  harness.clock().StepWall(1h);
  harness.Turn();
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.clock().StepWall(-5h);
  harness.Wait(10'001ms);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(TimeTest, ARestartInTheSameBootKeepsRelativeJobsOnTheBootClock) {
  EngineHarness harness;
  harness.EnqueueOk(In(10'000ms));
  harness.clock().StepWall(1h);
  harness.Restart();
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(10'001ms);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(TimeTest, AfterARebootTheWallTimeStandsIn) {
  EngineHarness harness;
  harness.EnqueueOk(In(10'000ms));
  harness.clock().StepWall(9'000ms);  // the machine was off
  harness.Restart(kBootId + 1);
  harness.Wait(1'000ms);
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(1ms);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

// A little back the wheel of the wall clock waits, from a minute on it is built anew.
TEST(TimeTest, P2P3StepsBackOfAnyLengthMakeNoJobEarlyOrLate) {
  EngineHarness harness;
  for (const Millis back : {1ms, 999ms, 20'000ms, 59'000ms, 1ms, 61'000ms, 3'600'000ms}) {
    harness.clock().StepWall(-back);
    harness.Turn();
    const WallTime now = harness.now().wall;
    std::vector<WallTime> due;
    for (const Millis until : {back + 1ms, back, back - 1ms, back / 2 + 1ms, 1ms}) {
      due.push_back(now + std::max(until, Millis(1)));
      harness.EnqueueOk({.due = DueAt{due.back()}});
    }
    std::ranges::sort(due);
    for (const WallTime at : due) {
      harness.clock().Advance(std::max(at - harness.now().wall - 1ms, Millis(0)));
      harness.Turn();
      ASSERT_TRUE(harness.now().wall >= at || harness.LeaseNow().empty()) << back.count();
      harness.Wait(std::max(at - harness.now().wall, Millis(0)));
      const auto leased = harness.LeaseNow();
      ASSERT_EQ(leased.size(), 1U) << back.count();
      EXPECT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
    }
  }
}

TEST(TimeTest, P2WhatFiredBeforeASmallStepBackWaitsAgain) {
  EngineHarness harness;
  const WallTime at = harness.now().wall + 1s;
  const JobId id = harness.EnqueueOk({.due = DueAt{at}}).id;
  harness.Wait(1s);
  EXPECT_EQ(harness.ShowOk(id).state, JobState::kReady);
  harness.clock().StepWall(-300ms);
  harness.Turn();
  EXPECT_EQ(harness.ShowOk(id).state, JobState::kScheduled);
  harness.Wait(299ms);
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(2ms);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(TimeTest, AbsoluteJobsFollowTheWallClock) {
  EngineHarness harness;
  const WallTime at = harness.now().wall + 1h;
  harness.EnqueueOk({.due = DueAt{at}});
  harness.clock().StepWall(59min);
  harness.Turn();
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.clock().StepWall(1min);
  harness.Turn();
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].due, at);
}

TEST(TimeTest, P2AStepBackMakesAbsoluteJobsWait) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 1h}});
  harness.Wait(50min);
  harness.clock().StepWall(-40min);
  harness.Turn();
  harness.Wait(11min);
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(39min);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(TimeTest, P2AStepBackTakesBackWhatFiredAndWasNotHandedOut) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 1h}});
  harness.clock().StepWall(2h);
  harness.Turn();
  harness.clock().StepWall(-2h);
  // Before the turn that notices, and after it.
  const RequestId at_once = harness.Send(Lease{.queues = {"default"}});
  EXPECT_TRUE(std::get<Leased>(harness.Take(at_once).body).jobs.empty());
  harness.Turn();
  EXPECT_TRUE(harness.LeaseNow().empty());
  EXPECT_EQ(harness.UntilNextEvent(), 1h);
  harness.Wait(1h);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(TimeTest, P2AStepBackShowsFiredJobsAsScheduledAgain) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk({.due = DueAt{harness.now().wall + 1h}});
  harness.clock().StepWall(2h);
  harness.Turn();
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kReady);
  harness.clock().StepWall(-2h);
  harness.Turn();
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kScheduled);
}

TEST(TimeTest, JobsBelowTheMarkFireInTimeAfterASecondStepBack) {
  EngineHarness harness;
  harness.Wait(1s);
  harness.EnqueueOk(In(5h));      // carries the low-water mark to now
  harness.clock().StepWall(-1h);  // now lies below it
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 60s}});
  harness.Turn();
  harness.clock().StepWall(-30s);
  harness.Turn();
  EXPECT_EQ(harness.UntilNextEvent(), 90s);
  harness.Wait(90s);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

// A command may come before the turn that fires what is due: its batch must not carry the mark past
// that.
TEST(TimeTest, P3TheLowWaterMarkStaysBelowAbsoluteJobsThatAreDueAndHaveNotFired) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 1min}});
  harness.clock().StepWall(1h);
  harness.Send(Enqueue{{In(3h)}});
  harness.CommitAll();
  harness.Restart();
  EXPECT_EQ(harness.LeaseNow(5).size(), 1U);
}

TEST(TimeTest, P3TheLowWaterMarkStaysBelowRelativeJobsThatAreDueAndHaveNotFired) {
  EngineHarness harness;
  harness.EnqueueOk(In(1min));
  harness.clock().Advance(1h);
  harness.Send(Enqueue{{In(3h)}});
  harness.CommitAll();
  harness.Restart();
  EXPECT_EQ(harness.LeaseNow(5).size(), 1U);
}

TEST(TimeTest, WithoutABootIdTheBootClockOfAnEarlierRunIsNotTrusted) {
  EngineHarness harness({.horizon = 24h});
  harness.Restart(/*boot_id=*/0);
  JobSpec spec = In(1h);
  spec.expires_after = 1h;
  const JobView job = harness.EnqueueOk(spec);
  harness.Restart(/*boot_id=*/0);
  harness.clock().StepWall(30min);  // as after a reboot: the wall time stands in
  ASSERT_TRUE(harness.Call(Reschedule{.job = job.id, .priority = 1}).status.ok());
  EXPECT_EQ(harness.UntilNextEvent(), 30min + 1ms);
  harness.clock().StepWall(1h);
  harness.Turn();
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].lateness, 30min);
}

TEST(TimeTest, WhatHasFiredDoesNotFireAgainAfterAStepBack) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 1s}});
  harness.Wait(1s);
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  ASSERT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  harness.clock().StepWall(-1h);
  harness.Wait(2h);
  EXPECT_TRUE(harness.LeaseNow().empty());
}

TEST(TimeTest, JobsEnqueuedAfterAStepBackFireInTheirTime) {
  EngineHarness harness;
  for (int i = 0; i < 3; ++i) {
    harness.EnqueueOk(In(0ms));
    ASSERT_TRUE(harness.Call(Ack{*harness.LeaseNow().at(0).lease_token}).status.ok());
    harness.Wait(1s);
  }
  harness.clock().StepWall(-1h);  // now lies below the low-water mark
  harness.EnqueueOk(In(5s, "relative"));
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 6s}, .payload = "absolute"});
  harness.Restart();
  harness.Wait(5s + 1ms);
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  harness.Wait(1s);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

// ---- A delay is told by the wall clock as it stands ----

JobFilter DueBefore(WallTime end) {
  return {.queue = "default", .due_before = end};
}

TEST(TimeTest, ADelayIsToldByTheWallClockAsItStands) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(20s));
  const JobView absolute = harness.EnqueueOk({.due = DueAt{harness.now().wall + 20s}});
  EXPECT_EQ(job.due, harness.now().wall + 20s);
  for (const Millis step : {Millis(-1h), Millis(3h)}) {
    harness.clock().StepWall(step);
    EXPECT_EQ(harness.ShowOk(job.id).due, harness.now().wall + 20s);
    EXPECT_EQ(harness.ShowOk(job.id).time_left, 20'001ms);
    EXPECT_EQ(harness.ShowOk(absolute.id).due, absolute.due);
    EXPECT_EQ(TagOf(harness.ShowOk(job.id)), TagOf(job)) << "nothing has happened to it";
  }
}

TEST(TimeTest, WhatIsToldOfADelayDoesNotWaverWithTheReadings) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(20s));
  for (const Millis step : {1ms, -2ms, 400ms}) {
    harness.clock().StepWall(step);
    EXPECT_EQ(harness.ShowOk(job.id).due, job.due);
  }
  harness.clock().StepWall(-1h);
  EXPECT_EQ(harness.ShowOk(job.id).due, job.due - 1h);
}

TEST(TimeTest, AJobThatIsReadyWasDueByTheWallClockAsItStands) {
  EngineHarness harness;
  const JobId id = harness.EnqueueOk(In(20s)).id;
  harness.clock().StepWall(-1h);
  harness.Wait(21s);
  EXPECT_EQ(harness.ShowOk(id).state, JobState::kReady);
  EXPECT_EQ(harness.ShowOk(id).due, harness.now().wall - 1s);
  EXPECT_EQ(harness.LeaseNow().at(0).due, harness.now().wall - 1s);
}

TEST(TimeTest, AFilterByDueTimeGoesByWhatIsTold) {
  for (const Millis step : {Millis(-10h), Millis(10h)}) {
    EngineHarness harness;
    harness.EnqueueOk(In(20s));
    harness.EnqueueOk(In(30min));
    harness.clock().StepWall(step);
    const WallTime end = harness.now().wall + 10min;
    const auto listed = [&harness](List command) {
      return std::get<JobList>(harness.Call(std::move(command)).body).jobs.size();
    };
    EXPECT_EQ(listed({.due_before = end}), 1U);
    EXPECT_EQ(listed({.due_before = end, .due_after = harness.now().wall}), 1U);
    EXPECT_EQ(listed({.due_after = end}), 1U);
    harness.Wait(21s);
    EXPECT_EQ(listed({.state = JobState::kReady, .due_before = end}), 1U);
    const Reply cancelled =
        harness.Call(ChangeMany{.action = ChangeMany::Action::kCancel, .filter = DueBefore(end)});
    EXPECT_EQ(std::get<ChangedMany>(cancelled.body).changed, 1U);
    EXPECT_EQ(listed({}), 1U);
  }
}

TEST(TimeTest, LeasesDoNotFeelTheWallClock) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}, .lease = 10s});
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  harness.clock().StepWall(1h);
  harness.Turn();
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.clock().StepWall(-2h);
  harness.Wait(10s);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(TimeTest, ABurstIsFiredInBoundedSteps) {
  EngineHarness harness;
  for (size_t i = 0; i < 2 * limits::kFireBatchMax; i += 1000) {
    Enqueue batch;
    batch.jobs.assign(1000, In(1000ms));
    harness.Send(std::move(batch));
  }
  harness.CommitAll();
  harness.clock().Advance(1001ms);
  EXPECT_TRUE(harness.engine().Advance(harness.now()));
  EXPECT_EQ(harness.engine().stats().ready, limits::kFireBatchMax);
  EXPECT_EQ(harness.UntilNextEvent(), 0ms);
}

TEST(TimeTest, P10AJobThatFallsDueDoesNotWaitBehindLeasesThatEndTogether) {
  EngineHarness harness;
  const size_t count = 2 * limits::kOwnWorkMax;
  for (size_t i = 0; i < count; i += 1000) {
    Enqueue batch;
    batch.jobs.assign(1000, In(0ms));
    harness.Send(std::move(batch));
    EXPECT_EQ(harness.LeaseNow(1000).size(), 1000U);
  }
  harness.EnqueueOk({.queue = "other", .due = DueAfter{30min}});
  const RequestId lease = harness.Send(Lease{.queues = {"other"}, .wait = 1h});
  // Nothing is committed any more.
  const auto advance = [&harness](Millis by) {
    harness.clock().Advance(by);
    while (harness.engine().Advance(harness.now())) {
    }
  };
  advance(15min);
  EXPECT_EQ(harness.engine().stats().leased, count - limits::kOwnWorkMax);
  EXPECT_LE(harness.UntilNextEvent().value_or(1h), 15min + 1ms);
  advance(15min + 1ms);
  EXPECT_EQ(std::get<Leased>(harness.Take(lease).body).jobs.size(), 1U);
}

}  // namespace
}  // namespace delayd::engine
