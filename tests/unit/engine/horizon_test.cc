#include <algorithm>
#include <iterator>
#include <set>

#include "base/limits.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

const EngineOptions kOneMinute{.horizon = 1min};

TEST(HorizonTest, P10FarJobsFireInTheirTime) {
  EngineHarness harness(kOneMinute);
  for (const auto delay : {30s, 60s, 61s, 90s, 3600s, 86400s}) {
    harness.EnqueueOk(In(delay));
  }
  harness.Wait(1ms);  // the rounding of the clocks
  for (const auto step : {30s, 30s, 1s, 29s, 3510s, 82800s}) {
    harness.Wait(step - 1ms);
    EXPECT_EQ(WorkOff(&harness), 0U) << step.count();
    harness.Wait(1ms);
    EXPECT_EQ(WorkOff(&harness), 1U) << step.count();
  }
}

TEST(HorizonTest, FarJobsAreShownMovedAndCancelled) {
  EngineHarness harness(kOneMinute);
  const JobView a = harness.EnqueueOk(Keyed("a", 1h));
  const JobView b = harness.EnqueueOk(Keyed("b", 1h));
  EXPECT_EQ(harness.ShowOk(a.id).state, JobState::kScheduled);
  EXPECT_TRUE(harness.Call(Cancel{KeyRef{"default", "a"}}).status.ok());
  EXPECT_TRUE(harness.Call(Reschedule{.job = b.id, .due = DueAfter{10s}}).status.ok());
  harness.Wait(10s + 1ms);
  EXPECT_EQ(WorkOff(&harness), 1U);
  const JobView c = harness.EnqueueOk(In(10s));
  EXPECT_TRUE(harness.Call(Reschedule{.job = c.id, .due = DueAfter{2h}}).status.ok());
  harness.Wait(1h + 1s);
  EXPECT_EQ(WorkOff(&harness), 0U);
  harness.Wait(1h);
  EXPECT_EQ(WorkOff(&harness), 1U);
}

TEST(HorizonTest, AStartWithFarJobsLoadsTheWindowOnly) {
  EngineHarness harness(kOneMinute);
  for (int i = 0; i < 100; ++i) {
    harness.EnqueueOk(In(Millis(i * 10'000)));
  }
  harness.Restart();
  EXPECT_EQ(harness.engine().stats().scheduled + harness.engine().stats().ready, 100U);
  std::set<JobId> seen;
  harness.Wait(1ms);  // the rounding of the clocks
  for (int i = 0; i < 100; ++i) {
    for (const JobView& job : harness.LeaseNow(10)) {
      EXPECT_TRUE(seen.insert(job.id).second);
      EXPECT_TRUE(harness.Call(Ack{*job.lease_token}).status.ok());
    }
    harness.Wait(10s);
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(HorizonTest, P10AReadyBacklogBeyondTheBudgetStaysOnDiskAndComesOldestFirst) {
  EngineHarness harness(kTenJobs);
  for (int i = 0; i < 200; ++i) {
    harness.Send(Enqueue{{In(Millis(i), std::to_string(i))}});
  }
  harness.Turn();
  harness.Wait(1s);
  harness.Restart();
  int next = 0;
  for (auto leased = harness.LeaseNow(4); !leased.empty(); leased = harness.LeaseNow(4)) {
    for (const JobView& job : leased) {
      EXPECT_EQ(job.payload, std::to_string(next++));
      EXPECT_TRUE(harness.Call(Ack{*job.lease_token}).status.ok());
    }
  }
  EXPECT_EQ(next, 200);
}

TEST(HorizonTest, ManyJobsDueInOneMillisecondPassTheBorderOneByOne) {
  EngineHarness harness(kTenJobs);
  for (int batch = 0; batch < 5; ++batch) {
    harness.Send(Enqueue{std::vector<JobSpec>(20, In(5min))});
  }
  harness.Turn();
  harness.Wait(5min + 1ms);
  std::set<JobId> seen;
  for (auto leased = harness.LeaseNow(7); !leased.empty(); leased = harness.LeaseNow(7)) {
    for (const JobView& job : leased) {
      EXPECT_TRUE(seen.insert(job.id).second);
      EXPECT_TRUE(harness.Call(Ack{*job.lease_token}).status.ok());
    }
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(HorizonTest, RelativeJobsKeyedWhileTheWallClockWasAheadAreNotMissed) {
  EngineHarness harness(kOneMinute);
  harness.clock().StepWall(24h);
  harness.EnqueueOk(In(10min));
  harness.clock().StepWall(-24h);
  harness.Turn();
  harness.Restart();
  harness.Wait(10min + 1ms);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(HorizonTest, AStepForwardFiresEverythingThatBecameDue) {
  EngineHarness harness(kOneMinute);
  for (int i = 1; i <= 5000; ++i) {
    harness.Send(Enqueue{{{.due = DueAt{harness.now().wall + i * 1s}}}});
  }
  harness.Turn();
  harness.clock().StepWall(3h);
  harness.Turn();
  EXPECT_EQ(harness.engine().stats().ready, 5000U);
}

TEST(HorizonTest, AClockThatJumpsFromTurnToTurnMakesNoBacklog) {
  EngineHarness harness({.horizon = 2ms});
  for (size_t i = 0; i <= limits::kLoadPagesBehindMax; ++i) {
    harness.EnqueueOk(In(10ms));
    harness.Wait(1s);
    EXPECT_EQ(WorkOff(&harness), 1U);
  }
  const RequestId lease = harness.Send(Lease{.queues = {"default"}, .count = 3, .wait = 1min});
  const JobView kicked = harness.EnqueueOk(In(10ms));
  harness.EnqueueOk(In(10ms));
  harness.Send(Kick{kicked.id});  // in memory from here on; the other lies on disk
  harness.Wait(1s);
  EXPECT_EQ(std::get<Leased>(harness.Take(lease).body).jobs.size(), 2U);
}

// A machine that was suspended has much to load, a page in each turn of the engine.
TEST(HorizonTest, P3WhoDoesNotWaitGetsWhatIsDueBehindPagesOfAnother) {
  EngineHarness harness(kOneMinute);
  for (size_t i = 0; i < 2 * limits::kLoadPageRows; ++i) {
    harness.Send(Enqueue{{ForQueue("other", 1h)}});
  }
  harness.EnqueueOk(In(1h + 1s));
  harness.Pass(2h);
  EXPECT_TRUE(harness.engine().Advance(harness.now()));
  const RequestId lease = harness.Send(Lease{.queues = {"default"}, .count = 1});
  harness.Turn();
  EXPECT_EQ(std::get<Leased>(harness.Take(lease).body).jobs.size(), 1U);
}

TEST(HorizonTest, TheOwnerIsWokenToLoadAndOtherwiseNot) {
  EngineHarness harness(kOneMinute);
  EXPECT_FALSE(harness.UntilNextEvent().has_value());
  harness.EnqueueOk(In(1h));
  ASSERT_TRUE(harness.UntilNextEvent().has_value());
  EXPECT_EQ(*harness.UntilNextEvent(), 1h - 30s + 1ms);
  // From wake to wake, the job is there in time.
  for (int wakes = 0; wakes < 1000 && harness.engine().stats().ready == 0; ++wakes) {
    harness.Wait(std::max(*harness.UntilNextEvent(), 1ms));
  }
  EXPECT_EQ(harness.engine().stats().ready, 1U);
  EXPECT_FALSE(harness.UntilNextEvent().has_value());
}

TEST(HorizonTest, NoneIsLostOnEitherSideOfTheFrontier) {
  EngineHarness harness(kOneMinute);
  for (int millis = 59'990; millis <= 60'010; ++millis) {
    harness.EnqueueOk(In(Millis(millis)));
  }
  harness.Wait(60'010ms + 1ms);
  EXPECT_EQ(WorkOff(&harness), 21U);
}

TEST(HorizonTest, AJobThatMovesAwayWhileItsPageIsLoadedDoesNotFireAtItsOldPlace) {
  EngineHarness harness(kOneMinute);
  const JobView job = harness.EnqueueOk(In(1h));
  harness.clock().Advance(1h - 20s);
  harness.Send(
      Reschedule{.job = job.id, .due = DueAfter{1h}});  // under way, and the page is loaded
  harness.Turn();
  harness.Wait(20s + 1ms);
  EXPECT_EQ(WorkOff(&harness), 0U);
  EXPECT_TRUE(harness.engine().TakeIncidents().empty());
  harness.Wait(1h - 20s);
  EXPECT_EQ(WorkOff(&harness), 1U);
}

TEST(HorizonTest, AJobUnderWayWhileItsPageIsLoadedFires) {
  EngineHarness harness(kOneMinute);
  harness.EnqueueOk(In(1h + 10s));  // what brings the frontier on
  harness.Send(Enqueue{{In(1h)}});
  harness.clock().Advance(1h - 20s);
  harness.Turn();
  harness.Wait(20s + 1ms);
  EXPECT_EQ(WorkOff(&harness), 1U);
}

// The frontier stands at the place of a job on disk. A change that leaves it there is under way.
TEST(HorizonTest, P3AJobChangedWhereTheFrontierStandsIsLoaded) {
  EngineHarness harness(kTenJobs);
  std::vector<JobId> ids;
  for (int i = 0; i < 40; ++i) {
    ids.push_back(harness.EnqueueOk(In(20s + i * 100ms)).id);
  }
  for (const JobId id : ids) {
    harness.Send(Reschedule{.job = id, .priority = 7});
  }
  for (size_t i = 0; i < 10; ++i) {
    harness.Send(Cancel{ids[i]});  // room for the next page
  }
  while (harness.engine().Advance(harness.now())) {
  }
  harness.CommitAll();
  harness.Wait(25s);
  EXPECT_EQ(WorkOff(&harness), 30U);
}

TEST(HorizonTest, P10MemoryHoldsTheBudgetAndAQuarterMoreAtMost) {
  EngineHarness harness(kTenJobs);
  for (int i = 0; i < 200; ++i) {
    harness.Send(Enqueue{{In(Millis(i))}});
    harness.Turn();
  }
  harness.Wait(1s);
  EXPECT_LE(harness.engine().stats().ready, 13U);
  EXPECT_EQ(harness.engine().stats().ready + harness.engine().stats().scheduled, 200U);
}

TEST(HorizonTest, P10AStartLoadsNoMoreThanBudgetAndHorizonAllow) {
  for (const EngineOptions& options : {kOneMinute, kTenJobs}) {
    EngineHarness harness(options);
    for (int i = 0; i < 100; ++i) {
      harness.Send(Enqueue{{In(Millis(i))}});
      harness.Send(Enqueue{{In(2min + Millis(i))}});
    }
    harness.Turn();
    EngineOptions same_boot = options;
    same_boot.boot_id = kBootId;
    uint64_t most = 0;
    ASSERT_TRUE(Engine::Load(same_boot, harness.store(), harness.now(), [&most](uint64_t loaded) {
                  most = std::max(most, loaded);
                }).ok());
    EXPECT_EQ(most, options.memory_jobs_max == 10 ? 10U : 100U);
  }
}

TEST(HorizonTest, P10AStartServesBeforeItHasLoadedTheWindow) {
  EngineHarness harness(kOneMinute);
  const size_t more = 10 * limits::kLoadPageRows;
  for (size_t jobs = 0; jobs < more; jobs += 1000) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, In(30s))});
    harness.CommitAll();
  }
  harness.EnqueueOk(In(0s));
  harness.Restart();
  EXPECT_LT(harness.engine().Figures(0).jobs_in_memory, more);
  EXPECT_EQ(harness.engine().stats().ready, 1U);
  harness.Turn();
  EXPECT_EQ(harness.engine().Figures(0).jobs_in_memory, more + 1);
  harness.Wait(30s + 1ms);
  EXPECT_EQ(harness.engine().stats().ready, more + 1);
}

TEST(HorizonTest, TheLowWaterMarkStaysBelowABacklogOnDisk) {
  EngineHarness harness(kTenJobs);
  for (int i = 0; i < 40; ++i) {
    harness.Send(Enqueue{{In(Millis(i))}});
  }
  harness.Turn();
  harness.Wait(1s);
  // Memory is empty for a moment, and a batch is closed in it.
  const std::vector<JobView> leased = harness.LeaseNow(20);
  ASSERT_LT(leased.size(), 20U);
  for (const JobView& job : leased) {
    harness.Send(Ack{*job.lease_token});
  }
  harness.CommitAll();
  harness.Restart();
  EXPECT_EQ(WorkOff(&harness), 40U - leased.size());
}

TEST(HorizonTest, P10RoomIsMadeOfWhatIsDueLastAndNotMoreThanMust) {
  EngineHarness harness({.horizon = 1h, .memory_jobs_max = 100});
  const auto enqueue = [&harness](Millis delay, int count) {
    for (int i = 0; i < count; ++i) {
      harness.EnqueueOk(In(delay));
    }
  };
  enqueue(30min, 100);
  EXPECT_EQ(harness.engine().Figures(0).jobs_in_memory, 100U);
  enqueue(10min, 50);
  EXPECT_GE(harness.engine().Figures(0).jobs_in_memory, 100U);
  EXPECT_LE(harness.engine().Figures(0).jobs_in_memory, 125U);
  EXPECT_LE(harness.engine().Figures(0).frontier_ahead, 31min);
  harness.Wait(10min + 1ms);
  EXPECT_EQ(WorkOff(&harness), 50U);
  harness.Wait(20min);
  EXPECT_EQ(WorkOff(&harness), 100U);
}

// The daemon was stopped in the middle, say: of the jobs behind the new frontier some are on disk
// again, and younger ones have still fallen due in memory.
TEST(HorizonTest, WhatIsBehindTheFrontierComesInOrderThoughItIsStillInMemory) {
  EngineHarness harness({.horizon = 1h, .memory_jobs_max = 100, .sweep_slots = 10});
  constexpr int kJobs = 130;
  for (int i = 0; i < kJobs; ++i) {
    harness.Send(Enqueue{{In(Millis(1000 + i * 37 % kJobs))}});
  }
  harness.CommitAll();
  ASSERT_TRUE(harness.engine().Advance(harness.now())) << "room is not being made";
  EXPECT_LT(harness.engine().Figures(0).jobs_in_memory, static_cast<uint64_t>(kJobs));
  harness.clock().Advance(2s);
  harness.engine().Advance(harness.now());
  const Reply first = harness.Take(harness.Send(Lease{.queues = {"default"}, .count = kJobs}));
  std::vector<JobView> leased = std::get<Leased>(first.body).jobs;
  EXPECT_GE(leased.size(), 90U);
  for (auto more = harness.LeaseNow(kJobs); !more.empty(); more = harness.LeaseNow(kJobs)) {
    std::ranges::copy(more, std::back_inserter(leased));
  }
  EXPECT_EQ(leased.size(), static_cast<size_t>(kJobs));
  EXPECT_TRUE(std::ranges::is_sorted(leased, {}, &JobView::due));
}

}  // namespace
}  // namespace delayd::engine
