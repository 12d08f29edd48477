// Queues with more ready jobs than memory has room for.
#include <set>

#include "base/limits.h"
#include "storage/keys.h"
#include "tests/support/split_mix.h"
#include "tests/unit/engine/engine_harness.h"
#include "tests/unit/engine/reads_through.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

// Ready jobs of `queue` that nobody works off.
void Pile(EngineHarness* harness, const std::string& queue, int jobs) {
  for (int i = 0; i < jobs; ++i) {
    harness->Send(Enqueue{{ForQueue(queue, Millis(i), std::to_string(i))}});
  }
  harness->Turn();
  harness->Wait(Millis(jobs) + 1s);
}

TEST(BacklogTest, P3AQueueNobodyWorksDoesNotDelayTheOthers) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 200);
  harness.EnqueueOk(ForQueue("busy", 30s));
  harness.EnqueueOk(ForQueue("busy", 5min));
  harness.Wait(30s);
  EXPECT_TRUE(harness.LeaseNow(1, "busy").empty());
  harness.Wait(1ms);
  EXPECT_EQ(WorkOff(&harness, "busy"), 1U);
  harness.Wait(4min + 30s);
  EXPECT_EQ(WorkOff(&harness, "busy"), 1U);
  EXPECT_EQ(WorkOff(&harness, "idle"), 200U);
}

TEST(BacklogTest, P3AWorkerThatWaitsGetsItsJobInTheMillisecond) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 200);
  harness.EnqueueOk(ForQueue("busy", 30s));
  const RequestId waiting = harness.Send(Lease{.queues = {"busy"}, .wait = 1h});
  // From wake to wake, as the owner does.
  const BootTime due = harness.now().boot + 30s + 1ms;
  while (harness.now().boot < due) {
    EXPECT_FALSE(harness.HasReply(waiting));
    harness.Wait(std::max(*harness.UntilNextEvent(), 1ms));
  }
  EXPECT_EQ(harness.now().boot, due);
  ASSERT_TRUE(harness.HasReply(waiting));
  EXPECT_EQ(std::get<Leased>(harness.Take(waiting).body).jobs.size(), 1U);
}

TEST(BacklogTest, P3AfterARestartTheOthersAreNotDelayedEither) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 200);
  harness.EnqueueOk(ForQueue("busy", 0s));
  harness.Restart();
  harness.Turn();
  EXPECT_EQ(WorkOff(&harness, "busy"), 1U);
  EXPECT_EQ(WorkOff(&harness, "idle"), 200U);
}

TEST(BacklogTest, ThatDueJobsWaitOnDiskIsToldWhenItLasts) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 200);
  EXPECT_TRUE(harness.engine().CheckBacklog().ok());
  EXPECT_LT(harness.engine().Figures(0).frontier_ahead, 0s);
  harness.Wait(1min);
  const Status backlog = harness.engine().CheckBacklog();
  EXPECT_EQ(backlog.reason(), "memory_full");
  EXPECT_NE(backlog.message().find("due ones of queue idle wait"), std::string::npos);
  EXPECT_NE(backlog.message().find("add workers"), std::string::npos);
  ASSERT_TRUE(harness.Call(Pause{.queue = "idle"}).status.ok());
  EXPECT_NE(harness.engine().CheckBacklog().message().find("resume it"), std::string::npos);
  ASSERT_TRUE(harness.Call(Resume{.queue = "idle"}).status.ok());
  EXPECT_EQ(WorkOff(&harness, "idle"), 200U);
  EXPECT_TRUE(harness.engine().CheckBacklog().ok());
  EXPECT_GT(harness.engine().Figures(0).frontier_ahead, 0s);
}

TEST(BacklogTest, TheLastThatLagsIsLoadedWhereAllOfItHasRoom) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "last", 9);
  Pile(&harness, "other", 30);
  EXPECT_EQ(WorkOff(&harness, "other"), 30U);
  harness.Turn();
  EXPECT_EQ(harness.engine().stats().ready, 9U);
}

TEST(BacklogTest, TheBacklogItselfComesOldestFirst) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 100);
  Pile(&harness, "other", 50);
  std::map<std::string, int> next;
  for (const std::string queue : {"idle", "other", "idle", "other", "idle", "other"}) {
    for (int i = 0; i < 20; ++i) {
      const auto leased = harness.LeaseNow(3, queue);
      for (const JobView& job : leased) {
        EXPECT_EQ(job.payload, std::to_string(next[queue]++)) << queue;
      }
      AckAll(&harness, leased);
    }
  }
  EXPECT_EQ(next["idle"], 100);
  EXPECT_EQ(next["other"], 50);
}

TEST(BacklogTest, P10EveryQueueHasOneJobInMemoryAndNoMoreThanTheBudgetAllows) {
  EngineHarness harness(kTenJobs);
  for (int queue = 0; queue < 30; ++queue) {
    for (int i = 0; i < 5; ++i) {
      harness.Send(Enqueue{{ForQueue("q" + std::to_string(queue), Millis(i))}});
    }
    harness.Turn();
  }
  harness.Wait(1s);
  EXPECT_LE(harness.engine().Figures(0).jobs_in_memory, 30U);
  for (int queue = 0; queue < 30; ++queue) {
    EXPECT_EQ(WorkOff(&harness, "q" + std::to_string(queue)), 5U) << queue;
  }
}

TEST(BacklogTest, WhatIsDueOnDiskIsReadyAsInMemory) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 100);
  const JobView last = harness.EnqueueOk(ForQueue("idle", 0s, "last"));
  EXPECT_EQ(last.state, JobState::kReady);
  EXPECT_EQ(harness.ShowOk(last.id).state, JobState::kReady);
  EXPECT_EQ(harness.ReasonOf(Kick{last.id}), "ready");
  const JobView later = harness.EnqueueOk(ForQueue("idle", 10s));
  EXPECT_EQ(harness.ShowOk(later.id).state, JobState::kScheduled);
  const Reply next = harness.Call(Peek{.queue = "idle", .which = Peek::Which::kDelayed});
  EXPECT_EQ(std::get<Indirect<JobView>>(next.body)->id, later.id);
  EXPECT_TRUE(harness.Call(Cancel{last.id}).status.ok());
  EXPECT_TRUE(harness.Call(Reschedule{.job = later.id, .due = DueAfter{0s}}).status.ok());
  EXPECT_EQ(harness.ShowOk(later.id).state, JobState::kReady);
  EXPECT_EQ(WorkOff(&harness, "idle"), 101U);
}

TEST(BacklogTest, AForecastCountsWhatWaitsBehindABacklog) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 100);
  for (int i = 1; i <= 20; ++i) {
    harness.EnqueueOk(ForQueue("idle", i * 10s));
  }
  const Reply reply = harness.Call(Forecast{
      .queue = "idle", .from = harness.now().wall, .to = harness.now().wall + 5min, .step = 5min});
  EXPECT_EQ(std::get<ForecastView>(reply.body).steps.at(0).count, 20U);
}

// Keyed before the wall clock as it was set, and not due by the boot clock: a start must know both.
TEST(BacklogTest, AfterARestartWhatWaitsOnDiskIsFoundWhateverTheWallClockDid) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 100);
  harness.Restart(kBootId + 1);  // so that what is in memory counts on the wall clock
  const JobView later = harness.EnqueueOk(ForQueue("idle", 10s));
  harness.clock().StepWall(1h);
  harness.Restart(kBootId + 1);
  harness.Turn();
  ASSERT_EQ(harness.ShowOk(later.id).state, JobState::kScheduled);
  const Reply next = harness.Call(Peek{.queue = "idle", .which = Peek::Which::kDelayed});
  ASSERT_TRUE(next.status.ok()) << next.status.message();
  EXPECT_EQ(std::get<Indirect<JobView>>(next.body)->id, later.id);
  const Reply foreseen = harness.Call(
      Forecast{.queue = "idle", .from = later.due - 1min, .to = later.due + 1min, .step = 1h});
  EXPECT_EQ(std::get<ForecastView>(foreseen.body).steps.at(0).count, 1U);
  const Reply kicked = harness.Call(KickQueue{.queue = "idle", .count = 10});
  EXPECT_EQ(std::get<Kicked>(kicked.body).count, 1U);
  EXPECT_EQ(harness.ShowOk(later.id).state, JobState::kReady);
}

TEST(BacklogTest, ChangesUnderWayAreSeenWhenAPageIsLoaded) {
  EngineHarness harness(kTenJobs);
  std::vector<JobId> ids;
  for (int i = 0; i < 60; ++i) {
    ids.push_back(harness.EnqueueOk(ForQueue("idle", 0s)).id);
  }
  harness.Wait(1s);
  // Not committed while pages are loaded: cancelled, moved away, new.
  for (int i = 20; i < 40; ++i) {
    harness.Send(Cancel{ids[static_cast<size_t>(i)]});
  }
  for (int i = 40; i < 50; ++i) {
    harness.Send(Reschedule{.job = ids[static_cast<size_t>(i)], .due = DueAfter{1h}});
  }
  for (int i = 0; i < 5; ++i) {
    harness.Send(Enqueue{{ForQueue("idle", 0s)}});
  }
  std::set<JobId> seen;
  std::vector<RequestId> leases;
  for (int i = 0; i < 100; ++i) {
    leases.push_back(harness.Send(Lease{.queues = {"idle"}, .count = 2}));
    while (harness.engine().Advance(harness.now())) {
    }
  }
  harness.CommitAll();
  for (const RequestId lease : leases) {
    const Reply reply = harness.Take(lease);
    for (const JobView& job : std::get<Leased>(reply.body).jobs) {
      EXPECT_TRUE(seen.insert(job.id).second);
    }
  }
  EXPECT_EQ(seen.size(), 35U);
  EXPECT_TRUE(harness.engine().TakeIncidents().empty());
}

// Nothing on disk tells of it when the common frontier goes on for its queue too.
TEST(BacklogTest, P3AFarJobUnderWayWhenItsQueueCatchesUpIsNotPassedOver) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 30);
  harness.Send(Enqueue{{ForQueue("idle", 2min)}});
  std::vector<RequestId> leases;
  for (int i = 0; i < 60; ++i) {
    leases.push_back(harness.Send(Lease{.queues = {"idle"}}));
    while (harness.engine().Advance(harness.now())) {
    }
  }
  harness.CommitAll();
  for (const RequestId lease : leases) {
    AckAll(&harness, std::get<Leased>(harness.Take(lease).body).jobs);
  }
  harness.Wait(2min + 1ms);
  EXPECT_EQ(WorkOff(&harness, "idle"), 1U);
}

TEST(BacklogTest, P10AStartDoesNotLoadALongBacklogBeforeTheFirstHandOut) {
  EngineHarness harness;
  const size_t behind = limits::kLoadPagesBehindMax * limits::kLoadPageRows;
  for (size_t jobs = 0; jobs < behind + 20'000; jobs += 1000) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, ForQueue("idle", 0s))});
    harness.CommitAll();
  }
  harness.Wait(1s);
  harness.EnqueueOk(ForQueue("busy", 0s));
  harness.Restart();
  EXPECT_LE(harness.engine().Figures(0).jobs_in_memory, behind);
  for (int turns = 0; turns < 10; ++turns) {
    harness.engine().Advance(harness.now());
  }
  EXPECT_EQ(harness.LeaseNow(1, "busy").size(), 1U);
  EXPECT_EQ(harness.engine().stats().ready + harness.engine().stats().scheduled, behind + 20'000);
  // There is room for the rest: it comes while requests are served, and priority decides among all.
  JobSpec urgent = ForQueue("idle", 0s, "urgent");
  urgent.priority = 0;
  harness.EnqueueOk(urgent);
  EXPECT_EQ(harness.engine().stats().ready, behind + 20'000 + 1);
  EXPECT_EQ(harness.engine().stats().scheduled, 0U);
  EXPECT_EQ(harness.LeaseNow(1, "idle").at(0).payload, "urgent");
}

TEST(BacklogTest, P10MemoryIsGivenBackInStepsAndNothingIsLost) {
  EngineHarness harness(EngineOptions{.horizon = 1min, .memory_jobs_max = 40'000});
  for (int i = 0; i < 60; ++i) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, ForQueue("idle", 0s))});
    harness.CommitAll();
    harness.engine().Advance(harness.now());
  }
  harness.Turn();
  EXPECT_LE(harness.engine().Figures(0).jobs_in_memory, 50'000U);
  harness.Restart();
  harness.Turn();
  EXPECT_LE(harness.engine().Figures(0).jobs_in_memory, 40'000U);
  harness.EnqueueOk(ForQueue("busy", 0s));
  EXPECT_EQ(WorkOff(&harness, "busy"), 1U);
  size_t seen = 0;
  for (auto leased = harness.LeaseNow(1000, "idle"); !leased.empty();
       leased = harness.LeaseNow(1000, "idle")) {
    seen += leased.size();
    for (const JobView& job : leased) {
      harness.Send(Ack{*job.lease_token});
    }
  }
  EXPECT_EQ(seen, 60'000U);
}

// In one turn all jobs of all queues were looked at: with millions of them everybody waited a
// second.
TEST(BacklogTest, P10WhereToCutManyQueuesIsFoundInSteps) {
  EngineHarness harness({.horizon = 1min, .memory_jobs_max = 1000, .sweep_slots = 100});
  for (int queue = 0; queue < 40; ++queue) {
    harness.Send(Enqueue{std::vector<JobSpec>(50, ForQueue("q" + std::to_string(queue), 0s))});
    harness.CommitAll();
  }
  const auto in_memory = [&harness] { return harness.engine().Figures(0).jobs_in_memory; };
  int turns = 0;
  for (; in_memory() == 2000 && turns < 100; ++turns) {
    ASSERT_TRUE(harness.engine().Advance(harness.now())) << "room is not being made";
  }
  EXPECT_GE(turns, 20 + 1);  // two thousand looks; and forty queues
  harness.Turn();
  EXPECT_LE(in_memory(), 1000U);
  for (int queue = 0; queue < 40; ++queue) {
    EXPECT_EQ(WorkOff(&harness, "q" + std::to_string(queue)), 50U);
  }
}

TEST(BacklogTest, ARowOfAQueueWithoutItsRecordIsReported) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 40);
  // The newest is on disk only: its record goes, its place in the index of the queue stays.
  const JobView last = harness.EnqueueOk(ForQueue("idle", 0s));
  storage::Batch damage;
  damage.Delete(storage::Table::kTimers, storage::TimerKey(last.due, last.id));
  ASSERT_TRUE(harness.store().Commit(damage).ok());
  EXPECT_EQ(WorkOff(&harness, "idle"), 40U);
  const std::vector<Status> incidents = harness.engine().TakeIncidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].code(), StatusCode::kDataLoss);
}

// What workers hold leaves little room, and jobs that are not due yet have taken it.
TEST(BacklogTest, P10RoomForAQueueThatHasNothingInMemoryIsMadeInSteps) {
  EngineHarness harness(EngineOptions{.horizon = 1min, .memory_jobs_max = 20'000});
  const auto enqueue = [&harness](const std::string& queue, Millis delay) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, ForQueue(queue, delay))});
    harness.CommitAll();
    harness.engine().Advance(harness.now());
  };
  for (int i = 0; i < 30; ++i) {
    enqueue("idle", 0s);
  }
  harness.Turn();
  for (int i = 0; i < 8; ++i) {
    enqueue("soon", 10s);
  }
  const auto lease_all = [&harness] {
    const RequestId lease = harness.Send(Lease{.queues = {"idle"}, .count = 1000});
    harness.CommitAll();
    return lease;
  };
  size_t seen = 0;
  RequestId lease = lease_all();
  for (; harness.HasReply(lease); lease = lease_all()) {
    seen += std::get<Leased>(harness.Take(lease).body).jobs.size();
  }
  EXPECT_GT(seen, 10'000U);
  EXPECT_LT(seen, 30'000U);
  EXPECT_TRUE(harness.engine().Advance(harness.now())) << "there is more to do";
  harness.Turn();
  EXPECT_FALSE(std::get<Leased>(harness.Take(lease).body).jobs.empty());
  harness.Wait(10s + 1ms);
  EXPECT_EQ(harness.LeaseNow(1, "soon").size(), 1U);
}

// A worker has so many.
void HoldJobs(EngineHarness* harness, int count) {
  for (; count > 0; count -= 1000) {
    const Reply busy = harness->Call(
        Enqueue{.jobs = std::vector<JobSpec>(1000, ForQueue("busy", 1h)), .brief = true});
    for (const auto& item : std::get<EnqueuedIds>(busy.body).items) {
      harness->Send(LeaseJob{.job = item.id, .lease = 1h});
    }
  }
}

// What workers hold has taken the budget, and no queue has more than the one job that it keeps:
// there is nothing to drop. The table is longer than one step of a sweep.
TEST(BacklogTest, P3RoomThatCannotBeMadeIsNotWaitedFor) {
  EngineHarness harness(EngineOptions{.horizon = 1min, .memory_jobs_max = 160});
  HoldJobs(&harness, 17'000);
  harness.CommitAll();
  for (int queue = 0; queue < 60; ++queue) {
    harness.Send(Enqueue{{ForQueue("q" + std::to_string(queue), 0s)}});
  }
  harness.Send(Enqueue{{ForQueue("late", 1s)}});
  harness.CommitAll();
  const auto turns = [&harness] {
    int count = 1;
    for (; harness.engine().Advance(harness.now()) && count < 1000; ++count) {
      harness.CommitAll();
    }
    return count;
  };
  EXPECT_LT(turns(), 1000) << "it is never done";
  harness.clock().Advance(1s + 1ms);
  const RequestId late = harness.Send(Lease{.queues = {"late"}, .wait = 1s});
  EXPECT_LT(turns(), 1000) << "it is never done";
  harness.CommitAll();
  ASSERT_TRUE(harness.HasReply(late));
  EXPECT_EQ(std::get<Leased>(harness.Take(late).body).jobs.size(), 1U);
}

// The table is longer than two steps of a sweep: of what goes from memory, the older half has gone
// and the younger half has not.
TEST(BacklogTest, ALaggingQueueComesInOrderWhileRoomIsBeingMade) {
  EngineHarness harness(EngineOptions{.horizon = 1min, .memory_jobs_max = 160});
  const auto enqueue_idle = [&harness](int from, int to) {
    for (int i = from; i < to; ++i) {
      harness.Send(Enqueue{{ForQueue("idle", 0s, std::to_string(i))}});
    }
    harness.CommitAll();
  };
  enqueue_idle(0, 40);
  HoldJobs(&harness, 34'000);
  harness.CommitAll();
  enqueue_idle(40, 80);
  int next = 0;
  const auto take_in_order = [&harness, &next](const std::vector<JobView>& leased) {
    for (const JobView& job : leased) {
      EXPECT_EQ(job.payload, std::to_string(next++));
      harness.Send(Ack{*job.lease_token});
    }
    return !leased.empty();
  };
  for (int step = 0; step < 4; ++step) {  // three for a look at the jobs, and one for the cut
    ASSERT_TRUE(harness.engine().Advance(harness.now())) << "room is not being made";
  }
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(harness.engine().Advance(harness.now())) << "room is not being made";
    const Reply reply = harness.Take(harness.Send(Lease{.queues = {"idle"}, .count = 80}));
    EXPECT_TRUE(take_in_order(std::get<Leased>(reply.body).jobs)) << "nothing in step " << step;
  }
  EXPECT_LT(next, 40);
  while (take_in_order(harness.LeaseNow(20, "idle"))) {
  }
  EXPECT_EQ(next, 80);
}

// What a queue takes of the room that is being made lets it lag no more: memory is full again, and
// the frontier is where it was.
TEST(BacklogTest, P3RoomThatALaggingQueueTakesIsNotMadeForEver) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SplitMix random(seed);
    EngineHarness harness(
        EngineOptions{.horizon = 1min, .memory_jobs_max = 4 + random.Next() % 3, .sweep_slots = 3});
    for (int step = 0; step < 20; ++step) {
      for (uint64_t jobs = random.Next() % 6; jobs > 0; --jobs) {
        harness.Send(Enqueue{{ForQueue("q" + std::to_string(random.Next() % 4),
                                       Millis(10 * static_cast<int64_t>(random.Next() % 4)))}});
      }
      harness.CommitAll();
      if (random.Next() % 5 == 0) {
        harness.Restart();
      }
      harness.clock().Advance(10ms);
      int turns = 0;
      for (; harness.engine().Advance(harness.now()) && turns < 500; ++turns) {
        harness.CommitAll();
      }
      ASSERT_LT(turns, 500) << "it is never done, seed " << seed;
    }
  }
}

// q0 to q29.
void FillThirtyQueues(EngineHarness* harness, size_t jobs) {
  for (int queue = 0; queue < 30; ++queue) {
    harness->Send(Enqueue{std::vector<JobSpec>(jobs, ForQueue("q" + std::to_string(queue), 0s))});
    harness->Turn();
  }
}

class CountsPagesOfQueues final : public ReadsThrough {
 public:
  using ReadsThrough::ReadsThrough;

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    pages += table == storage::Table::kByQueue ? 1 : 0;
    return ReadsThrough::Scan(table, from, to, visit);
  }

  mutable int pages = 0;
};

// Each page of a lagging queue walks them all.
TEST(BacklogTest, P10WhatIsUnderWayIsNotWalkedForEveryQueueInOneTurn) {
  EngineHarness filled(kTenJobs);
  FillThirtyQueues(&filled, 40);
  const CountsPagesOfQueues reader(filled.store());
  auto loaded = Engine::Load(
      {.boot_id = kBootId, .horizon = 1min, .memory_jobs_max = 600}, reader, filled.now());
  ASSERT_TRUE(loaded.ok());
  Engine& engine = **loaded;
  while (engine.Advance(filled.now())) {
  }
  for (RequestId queue = 0; queue < 30; ++queue) {
    engine.Execute(
        queue, Lease{.queues = {"q" + std::to_string(queue)}, .count = 1000}, filled.now());
  }
  for (RequestId i = 0; i < 40; ++i) {
    engine.Execute(100 + i, Enqueue{std::vector<JobSpec>(1000, ForQueue("far", 1h))}, filled.now());
  }
  reader.pages = 0;
  int turns = 0;
  for (bool more = true; more; ++turns) {
    const int before = reader.pages;
    more = engine.Advance(filled.now());
    EXPECT_LE(reader.pages - before, 2);
    ASSERT_LT(turns, 1000);
  }
  EXPECT_GT(reader.pages, 20);
}

// One scan of the timers fails, or shows keys that lack their last byte.
class OneBadScan final : public ReadsThrough {
 public:
  OneBadScan(const storage::JobReader& store, int bad) : ReadsThrough(store), bad_(bad) {}

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    const bool is_bad = table == storage::Table::kTimers && scans_++ == bad_ / 2;
    if (is_bad && bad_ % 2 == 0) {
      return Unavailable("the disk does not answer", "storage_io");
    }
    return ReadsThrough::Scan(table, from, to, [&](std::string_view key, std::string_view value) {
      return visit(key.substr(0, key.size() - (is_bad ? 1 : 0)), value);
    });
  }

 private:
  const int bad_;
  mutable int scans_ = 0;
};

// More queues than memory has room for: which row comes next on disk is only good to know.
TEST(BacklogTest, P3AScanThatFailsEndsTheEngineOrMakesNoJobLate) {
  EngineHarness filled(kTenJobs);
  FillThirtyQueues(&filled, 3);
  filled.EnqueueOk(ForQueue("later", 1h));
  filled.Wait(1s);
  int survived = 0;
  for (int bad = 0; bad < 40; ++bad) {
    const OneBadScan reader(filled.store(), bad);
    auto loaded = Engine::Load(
        {.boot_id = kBootId, .horizon = 1min, .memory_jobs_max = 10}, reader, filled.now());
    if (!loaded.ok()) {
      continue;
    }
    Engine& engine = **loaded;
    while (engine.Advance(filled.now())) {
    }
    if (!engine.fatal().ok()) {
      continue;
    }
    ++survived;
    EXPECT_EQ(engine.stats().scheduled + engine.stats().ready, 91U);
    for (RequestId queue = 0; queue < 30; ++queue) {
      engine.Execute(queue, Lease{.queues = {"q" + std::to_string(queue)}}, filled.now());
    }
    EXPECT_EQ(engine.stats().leased, 30U) << "bad scan " << bad;
  }
  EXPECT_GT(survived, 0);
}

JobSpec Fleeting(Millis delay) {
  JobSpec spec = ForQueue("fleeting", delay);
  spec.expires_after = 1s;
  return spec;
}

// More than memory has room for, all of them too late.
void PileExpired(EngineHarness* harness, int jobs) {
  for (int i = 0; i < jobs; ++i) {
    harness->Send(Enqueue{{Fleeting(Millis(i))}});
  }
  harness->Turn();
  harness->Wait(10s);
}

TEST(BacklogTest, WhoDoesNotWaitGetsAJobThatLiesOnDiskBehindExpiredOnes) {
  EngineHarness harness(kTenJobs);
  PileExpired(&harness, 100);
  const JobView fresh = harness.EnqueueOk(ForQueue("fleeting", 0s));
  const RequestId lease = harness.Send(Lease{.queues = {"fleeting"}, .count = 2});
  EXPECT_FALSE(harness.HasReply(lease)) << "none would be wrong: there is one on disk";
  harness.Turn();
  const auto jobs = std::get<Leased>(harness.Take(lease).body).jobs;
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].id, fresh.id);
}

TEST(BacklogTest, WhoDoesNotWaitGetsAJobAlsoWhenAnotherTookAllThatWasInMemory) {
  EngineHarness harness(kTenJobs);
  Pile(&harness, "idle", 100);
  const RequestId first = harness.Send(Lease{.queues = {"idle"}, .count = 10});
  const RequestId second = harness.Send(Lease{.queues = {"idle"}, .count = 3});
  harness.Turn();
  EXPECT_FALSE(std::get<Leased>(harness.Take(first).body).jobs.empty());
  EXPECT_FALSE(std::get<Leased>(harness.Take(second).body).jobs.empty());
}

TEST(BacklogTest, WhereAllOnDiskHasExpiredTooTheAnswerIsNoneAsSoonAsThatIsKnown) {
  EngineHarness harness(kTenJobs);
  PileExpired(&harness, 100);
  harness.EnqueueOk(ForQueue("fleeting", 1h));
  EXPECT_TRUE(harness.LeaseNow(1, "fleeting").empty());
  const auto stats = harness.Call(GetStats{});
  EXPECT_EQ(std::get<Indirect<StatsView>>(stats.body)->dead, 100U);
}

}  // namespace
}  // namespace delayd::engine
