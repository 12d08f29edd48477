// P10 beyond memory: what one turn does, and what stays behind, does not grow with what has piled
// up.
#include <algorithm>

#include "base/limits.h"
#include "daemon/engine/low_water_mark.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "tests/unit/engine/engine_harness.h"
#include "tests/unit/engine/reads_through.h"

namespace delayd::engine {
namespace {

void EnqueueMany(EngineHarness* harness, size_t count, const JobSpec& spec) {
  for (size_t i = 0; i < count; ++i) {
    harness->Send(Enqueue{{spec}});
  }
  harness->CommitAll();
}

uint64_t DeadOf(EngineHarness* harness) {
  const auto stats = harness->Call(GetStats{});
  return std::get<Indirect<StatsView>>(stats.body)->dead;
}

TEST(BoundsTest, P10JobsThatExpiredAreBuriedInBoundedSteps) {
  EngineHarness harness;
  const size_t count = 3 * limits::kPassOverMax;
  EnqueueMany(&harness, count, {.due = DueAfter{}, .expires_after = Millis(1000)});
  harness.EnqueueOk({.due = DueAfter{Millis(3000)}, .payload = "fresh"});
  harness.Wait(Millis(3001));
  const RequestId lease = harness.Send(Lease{.queues = {"default"}});
  EXPECT_FALSE(harness.HasReply(lease)) << "none would be wrong: there is one behind them";
  harness.Turn();
  EXPECT_EQ(DeadOf(&harness), count) << "all turns later";
  const auto jobs = std::get<Leased>(harness.Take(lease).body).jobs;
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].payload, "fresh");
}

TEST(BoundsTest, P10OneTurnBuriesSoManyAndAsksForAnother) {
  EngineHarness harness;
  EnqueueMany(
      &harness, 3 * limits::kPassOverMax, {.due = DueAfter{}, .expires_after = Millis(1000)});
  harness.Wait(Millis(2000));
  const RequestId lease = harness.Send(Lease{.queues = {"default"}});
  size_t turns = 0;
  while (harness.engine().Advance(harness.now())) {
    ++turns;
    size_t jobs = 0;
    while (auto sealed = harness.engine().Seal(harness.now())) {
      jobs += sealed->jobs;
      ASSERT_TRUE(harness.store().Commit(*sealed->batch).ok());
      harness.engine().Committed(sealed->sequence);
    }
    EXPECT_LE(jobs, 2 * limits::kPassOverMax);
  }
  EXPECT_GE(turns, 2U);
  EXPECT_TRUE(std::get<Leased>(harness.Take(lease).body).jobs.empty());
}

TEST(BoundsTest, P10ALeaseOfAnotherQueueIsNotHeldUpByJobsThatExpired) {
  EngineHarness harness;
  EnqueueMany(
      &harness, 3 * limits::kPassOverMax, {.due = DueAfter{}, .expires_after = Millis(1000)});
  harness.Wait(Millis(2000));
  harness.Send(Lease{.queues = {"default"}});
  const RequestId other = harness.Send(Lease{.queues = {"other"}});
  ASSERT_TRUE(harness.HasReply(other));
  EXPECT_TRUE(std::get<Leased>(harness.Take(other).body).jobs.empty());
}

TEST(BoundsTest, WhoHasWaitedLongerGetsTheJobBehindThoseThatExpired) {
  EngineHarness harness;
  EnqueueMany(
      &harness, 3 * limits::kPassOverMax, {.due = DueAfter{}, .expires_after = Millis(1000)});
  harness.EnqueueOk({.due = DueAfter{Millis(3000)}, .payload = "fresh"});
  harness.Wait(Millis(3001));
  const RequestId first = harness.Send(Lease{.queues = {"default"}, .wait = Millis(5000)});
  RequestId last{};
  for (int i = 0; i < 5; ++i) {
    last = harness.Send(Lease{.queues = {"default"}});
    harness.Send(EndWait{last});
  }
  harness.Turn();
  ASSERT_TRUE(harness.HasReply(first));
  EXPECT_EQ(std::get<Leased>(harness.Take(first).body).jobs.size(), 1U);
  ASSERT_TRUE(harness.HasReply(last)) << "at once, when all was looked through";
  EXPECT_TRUE(std::get<Leased>(harness.Take(last).body).jobs.empty());
}

// The waiting one stands before it in the queue, and nothing else is known of the other queue.
TEST(BoundsTest, WhoDoesNotWaitIsAnsweredBehindOneWhoDoes) {
  EngineHarness harness;
  EnqueueMany(
      &harness, 3 * limits::kPassOverMax, {.due = DueAfter{}, .expires_after = Millis(1000)});
  harness.Wait(Millis(2000));
  const RequestId waits = harness.Send(Lease{.queues = {"default"}, .wait = Millis(20'000)});
  const RequestId asks = harness.Send(Lease{.queues = {"default", "nope", "nope"}});
  EXPECT_FALSE(harness.HasReply(asks)) << "there may be one behind those that expired";
  harness.Turn();
  EXPECT_FALSE(harness.HasReply(waits));
  ASSERT_TRUE(harness.HasReply(asks)) << "at once, when all was looked through";
  const RequestId next = harness.Send(Lease{.queues = {"nope"}});
  EXPECT_TRUE(harness.HasReply(next));
}

TEST(BoundsTest, AShortWaitIsAsLongAsItWasAskedForOnceAllWasLookedThrough) {
  EngineHarness harness;
  EnqueueMany(
      &harness, 3 * limits::kPassOverMax, {.due = DueAfter{}, .expires_after = Millis(1000)});
  harness.Wait(Millis(2000));
  const RequestId lease = harness.Send(Lease{.queues = {"default"}, .wait = Millis(10)});
  harness.Turn();
  EXPECT_FALSE(harness.HasReply(lease));
  harness.Wait(Millis(10));
  EXPECT_TRUE(harness.HasReply(lease));
}

TEST(BoundsTest, AWaitThatIsEndedGetsTheJobBehindThoseThatExpired) {
  EngineHarness harness;
  EnqueueMany(
      &harness, 3 * limits::kPassOverMax, {.due = DueAfter{}, .expires_after = Millis(1000)});
  harness.EnqueueOk({.due = DueAfter{Millis(3000)}, .payload = "fresh"});
  harness.Wait(Millis(3001));
  const RequestId lease = harness.Send(Lease{.queues = {"default"}, .wait = Millis(5000)});
  harness.Send(EndWait{lease});
  harness.Turn();
  ASSERT_TRUE(harness.HasReply(lease));
  EXPECT_EQ(std::get<Leased>(harness.Take(lease).body).jobs.size(), 1U);
}

TEST(BoundsTest, JobsOfTheWallClockFireWhileOthersExpire) {
  EngineHarness harness;
  EnqueueMany(
      &harness,
      3 * limits::kPassOverMax,
      {.due = DueAfter{}, .payload = std::string(1024, 'x'), .expires_after = Millis(1000)});
  harness.EnqueueOk({.queue = "other", .due = DueAt{harness.now().wall + Millis(2001)}});
  harness.Wait(Millis(2000));
  harness.Send(Lease{.queues = {"default"}, .wait = Millis(5000)});
  for (int turns = 0; turns < 2; ++turns) {
    harness.Send(Enqueue{{{.queue = "third"}}});
    harness.engine().Advance(harness.now());  // fills a batch, and the last one is being written
    harness.clock().Advance(Millis(1));
  }
  EXPECT_EQ(std::get<Leased>(harness.Call(Lease{.queues = {"other"}}).body).jobs.size(), 1U);
}

TEST(BoundsTest, P10LeasesThatEndTogetherWaitForTheCommitsOfThoseBefore) {
  EngineHarness harness;
  const size_t count = 2 * limits::kOwnWorkMax + 100;
  EnqueueMany(&harness, count, {.due = DueAfter{}});
  for (size_t leased = 0; leased < count;) {
    leased += harness.LeaseNow(1000).size();
  }
  harness.clock().Advance(kHour);
  size_t jobs = 0;
  for (size_t rounds = 0; jobs < count; ++rounds) {
    ASSERT_LT(rounds, 10U);
    while (harness.engine().Advance(harness.now())) {
    }
    if (jobs + limits::kOwnWorkMax < count) {
      EXPECT_NE(harness.UntilNextEvent(), Millis(0)) << "the commit wakes it";
    }
    size_t round = 0;
    while (auto sealed = harness.engine().Seal(harness.now())) {
      round += sealed->jobs;
      ASSERT_TRUE(harness.store().Commit(*sealed->batch).ok());
      harness.engine().Committed(sealed->sequence);
    }
    EXPECT_LE(round, limits::kOwnWorkMax + limits::kFireStepMax);
    jobs += round;
  }
  EXPECT_EQ(jobs, count);
}

size_t RowsOfFinished(EngineHarness* harness) {
  size_t rows = 0;
  const Status scanned = harness->store().Scan(
      storage::Table::kDone, std::string(1, '\0'), {}, [&rows](std::string_view, std::string_view) {
        ++rows;
        return true;
      });
  EXPECT_TRUE(scanned.ok());
  return rows;
}

void FinishMany(EngineHarness* harness, size_t count) {
  EnqueueMany(harness, count, {.due = DueAfter{}});
  for (size_t done = 0; done < count; done += limits::kTrimRowsMax) {
    for (const JobView& job : harness->LeaseNow(limits::kTrimRowsMax)) {
      harness->Send(Ack{.token = *job.lease_token, .brief = true});
    }
    harness->CommitAll();
  }
}

TEST(BoundsTest, P10ManyAreForgottenWithoutASecondBetweenTheSteps) {
  EngineHarness harness({.defaults = {.key_retention = Millis(0), .history_retention = kHour}});
  FinishMany(&harness, 4 * limits::kTrimRowsMax);
  harness.Wait(kHour + Millis(limits::kTrimIntervalMsMin));
  for (int step = 0; step < 3; ++step) {
    harness.Wait(Millis(limits::kTrimPauseMs));
  }
  EXPECT_EQ(RowsOfFinished(&harness), 0U);
}

// Else they pile up where more jobs finish, for as long as they are kept, than the steps forget.
TEST(BoundsTest, P10WhatIsLeftLongBehindItsTimeIsForgottenFaster) {
  EngineHarness harness({.defaults = {.key_retention = Millis(0), .history_retention = kHour}});
  FinishMany(&harness, 4 * limits::kTrimRowsMax);
  harness.Wait(kHour + Millis(limits::kTrimBehindMs) + Millis(1000));
  for (int step = 0; step < 3; ++step) {
    harness.Wait(Millis(limits::kTrimPauseBehindMs));
  }
  EXPECT_EQ(RowsOfFinished(&harness), 0U);
}

TEST(BoundsTest, P9ADamagedRowOfAFinishedJobKeepsNoOtherFromBeingForgottenOrListed) {
  EngineHarness harness({.defaults = {.key_retention = Millis(0), .history_retention = kHour}});
  for (const char* payload : {"a", "b", "c"}) {
    harness.EnqueueOk({.due = DueAfter{}, .payload = payload});
    ASSERT_TRUE(harness.Call(Ack{*harness.LeaseNow().at(0).lease_token}).status.ok());
    harness.Wait(Millis(10));
  }
  std::vector<std::string> keys;
  ASSERT_TRUE(harness.store()
                  .Scan(storage::Table::kDone,
                        std::string(1, '\0'),
                        {},
                        [&keys](std::string_view key, std::string_view) {
                          keys.emplace_back(key);
                          return true;
                        })
                  .ok());
  ASSERT_EQ(keys.size(), 3U);
  storage::Batch batch;
  batch.Put(storage::Table::kDone, keys[1], "rot");
  ASSERT_TRUE(harness.store().Commit(batch).ok());

  const Reply listed = harness.Call(List{.state = JobState::kFinished});
  ASSERT_TRUE(listed.status.ok()) << listed.status.message();
  const auto& jobs = std::get<JobList>(listed.body).jobs;
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_NE(jobs[1].last_error, "");

  harness.Wait(kHour + Millis(2 * limits::kTrimIntervalMsMin));
  std::string value;
  EXPECT_FALSE(harness.store().Get(storage::Table::kDone, keys[0], &value).ok());
  EXPECT_TRUE(harness.store().Get(storage::Table::kDone, keys[1], &value).ok()) << "for verify";
  EXPECT_FALSE(harness.store().Get(storage::Table::kDone, keys[2], &value).ok());
  EXPECT_FALSE(harness.engine().TakeIncidents().empty());
}

TEST(BoundsTest, P9ADamagedDeadJobIsListedAmongTheOthers) {
  EngineHarness harness;
  for (int i = 0; i < 3; ++i) {
    harness.EnqueueOk({.due = DueAfter{}});
    ASSERT_TRUE(harness.Call(Bury{*harness.LeaseNow().at(0).lease_token}).status.ok());
  }
  std::vector<std::string> keys;
  ASSERT_TRUE(harness.store()
                  .Scan(storage::Table::kDead,
                        std::string(1, '\0'),
                        {},
                        [&keys](std::string_view key, std::string_view) {
                          keys.emplace_back(key);
                          return true;
                        })
                  .ok());
  storage::Batch batch;
  batch.Put(storage::Table::kDead, keys.at(1), "rot");
  ASSERT_TRUE(harness.store().Commit(batch).ok());
  const Reply listed = harness.Call(List{.queue = "default", .state = JobState::kDead});
  ASSERT_TRUE(listed.status.ok()) << listed.status.message();
  const auto& jobs = std::get<JobList>(listed.body).jobs;
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs[1].state, JobState::kDead);
  EXPECT_NE(jobs[1].last_error, "");
}

TEST(BoundsTest, P10WhatWaitsForAQueueThatNeverWasLeavesNothingBehind) {
  EngineHarness harness;
  for (int i = 0; i < 100; ++i) {
    const RequestId lease = harness.Send(
        Lease{.queues = {"default", "reply-" + std::to_string(i)}, .wait = Millis(10)});
    harness.Wait(Millis(11));
    EXPECT_TRUE(harness.HasReply(lease));
    harness.Take(lease);
  }
  // Nor ids that nobody has.
  harness.EnqueueOk({.queue = "first"});
  size_t queues = 0;
  ASSERT_TRUE(harness.store()
                  .Scan(storage::Table::kQueues,
                        std::string(1, '\0'),
                        {},
                        [&queues](std::string_view key, std::string_view value) {
                          ++queues;
                          const auto record = storage::DecodeQueueRecord(key, value);
                          EXPECT_TRUE(record.ok());
                          EXPECT_LE(ToInt(record->id), 2U);
                          return true;
                        })
                  .ok());
  EXPECT_EQ(queues, 1U);
}

TEST(BoundsTest, P10LeasesThatEndTogetherGoIntoBatchesOfTheUsualSize) {
  EngineHarness harness;
  const size_t count = 4000;
  EnqueueMany(&harness, count, {.due = DueAfter{}});
  for (size_t leased = 0; leased < count; leased += 1000) {
    ASSERT_EQ(harness.LeaseNow(1000).size(), 1000U);
  }
  harness.clock().Advance(kHour);
  size_t jobs = 0;
  while (harness.engine().Advance(harness.now())) {
  }
  while (auto sealed = harness.engine().Seal(harness.now())) {
    EXPECT_LE(sealed->jobs, 2 * limits::kCommitOpsJobsMax);
    jobs += sealed->jobs;
    ASSERT_TRUE(harness.store().Commit(*sealed->batch).ok());
    harness.engine().Committed(sealed->sequence);
  }
  EXPECT_EQ(jobs, count);
  harness.Restart();
  EXPECT_EQ(harness.LeaseNow(1000).size(), 1000U);
}

TEST(FiredKeysTest, P10AJobThatFiresAgainAndAgainIsOneEntry) {
  FiredKeys keys;
  const WallTime due = WallFromMillis(1000);
  for (int i = 0; i < 100'000; ++i) {
    keys.Add(due, 7);
    EXPECT_EQ(keys.Min(1, [](const FiredKeys::Key&) { return true; }), due);
    ASSERT_LE(keys.size(), 1100U);
  }
}

TEST(JobTableTest, P10ThePartsOfTheIndexGrowOneAfterTheOther) {
  constexpr size_t kSize = 15'000;
  constexpr uint64_t kAtATime = 20'000;
  for (const uint64_t step : {1U, 2U, 3U, 10U}) {
    std::vector<size_t> sizes(JobTable::kParts);
    std::vector<uint64_t> grown;
    for (uint64_t i = 1; grown.size() < JobTable::kParts; ++i) {
      ASSERT_LE(i, 2 * JobTable::kParts * kSize) << "a part has hardly any";
      if (++sizes[JobTable::PartOf(JobId{i * step})] == kSize) {
        grown.push_back(i);
      }
    }
    size_t most = 0;
    for (const uint64_t from : grown) {
      const auto begin = std::ranges::lower_bound(grown, from);
      const auto end = std::ranges::lower_bound(grown, from + kAtATime);
      most = std::max<size_t>(most, static_cast<size_t>(end - begin));
    }
    EXPECT_LE(most, 5U) << "of every " << step << "th id";
  }
}

TEST(FiredKeysTest, P10MillionsThatEndedAreForgottenLittleByLittle) {
  FiredKeys keys;
  constexpr Slot kJobs = 100'000;
  std::vector<bool> lives(kJobs, true);
  for (Slot slot = 0; slot < kJobs; ++slot) {
    keys.Add(WallFromMillis(1000 + slot), slot);
  }
  size_t looked_at = 0;
  const auto is_live = [&](const FiredKeys::Key& key) {
    ++looked_at;
    return lives[key.slot];
  };
  // Neither the first nor the last ones end first.
  size_t live = kJobs;
  Slot first = 0;
  for (Slot i = 0; i < kJobs; ++i) {
    const Slot slot = (i * 7919 + 1) % kJobs;
    lives[slot] = false;
    --live;
    while (first < kJobs && !lives[first]) {
      ++first;
    }
    if (i % 100 != 0) {
      continue;
    }
    looked_at = 0;
    const auto least = keys.Min(live, is_live);
    ASSERT_LE(looked_at, FiredKeys::kLooksMax + 2);
    ASSERT_EQ(least, live == 0 ? std::nullopt : std::optional(WallFromMillis(1000 + first)));
    ASSERT_LE(keys.size(), 2 * live + 1024 + 25 * 100);
  }
}

TEST(FiredKeysTest, AJobThatFiresWhileOthersAreForgottenIsKept) {
  FiredKeys keys;
  constexpr Slot kJobs = 20'000;
  std::vector<WallTime> live_keys(kJobs);
  const auto fire = [&](Slot slot, int64_t millis) {
    live_keys[slot] = WallFromMillis(millis);
    keys.Add(live_keys[slot], slot);
  };
  const auto is_live = [&](const FiredKeys::Key& key) {
    return live_keys[key.slot] == key.key_due;
  };
  for (Slot slot = 0; slot < kJobs; ++slot) {
    fire(slot, 1000 + slot);
  }
  for (Slot slot = 100; slot < kJobs; ++slot) {
    live_keys[slot] = WallTime();
  }
  EXPECT_EQ(keys.Min(100, is_live), WallFromMillis(1000)) << "it has begun";
  for (Slot slot = 0; slot < 100; ++slot) {
    fire(slot, 500'000 + slot);  // another job has the slot of one that was kept
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_LE(keys.Min(100, is_live), WallFromMillis(500'000));
  }
  EXPECT_EQ(keys.Min(100, is_live), WallFromMillis(500'000));
  EXPECT_EQ(keys.size(), 100U);
}

TEST(BoundsTest, AHandOutThatEndsWithItsConnectionIsCountedAndUsesNoAttempt) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk({.due = DueAfter{}, .max_attempts = 2});
  for (uint32_t round = 1; round <= 5; ++round) {
    const auto leased = harness.LeaseNow();
    ASSERT_EQ(leased.size(), 1U);
    EXPECT_EQ(leased[0].attempt, 1U);
    EXPECT_EQ(harness.ShowOk(job.id).reserves, round);
    harness.Send(GiveBack{*leased[0].lease_token});
    harness.Turn();
    harness.Restart();
    EXPECT_EQ(harness.ShowOk(job.id).reserves, round) << "also after a restart";
  }
}

TEST(BoundsTest, AnAnswerThatWasNotFetchedYetIsAbandonedToo) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}});
  const Now now = harness.now();
  harness.engine().Execute(900, Lease{.queues = {"default"}}, now);
  harness.engine().Execute(901, Abandon{900}, now);  // its answer waits to be taken
  for (Reply& reply : harness.engine().TakeReplies()) {
    if (reply.request == 900) {
      EXPECT_TRUE(std::get<Leased>(reply.body).jobs.empty());
    }
  }
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].attempt, 1U);
}

TEST(BoundsTest, KickGoesOnBehindTheDeadThatAreGoneAndFindsOlderOnesThatCome) {
  EngineHarness harness;
  const auto bury_one = [&harness] {
    const JobView job = harness.EnqueueOk({.due = DueAfter{}});
    EXPECT_TRUE(harness.Call(Bury{*harness.LeaseNow().at(0).lease_token}).status.ok());
    return job.id;
  };
  harness.Wait(Millis(10'000));
  bury_one();
  harness.Wait(Millis(1000));
  const JobId second = bury_one();
  const auto buried = [&harness] {
    const Reply reply = harness.Call(Peek{.queue = "default", .which = Peek::Which::kBuried});
    return reply.status.ok() ? std::get<Indirect<JobView>>(reply.body)->id : JobId{};
  };
  ASSERT_TRUE(harness.Call(KickQueue{.queue = "default", .count = 1}).status.ok());
  EXPECT_EQ(buried(), second);
  harness.LeaseNow();  // the one that was kicked
  harness.clock().StepWall(Millis(-5000));
  harness.Turn();
  const JobId older = bury_one();
  EXPECT_EQ(buried(), older);
  EXPECT_EQ(std::get<JobList>(harness.Call(List{.queue = "default", .state = JobState::kDead}).body)
                .jobs.size(),
            2U);
}

// A relative job is keyed on the wall clock of the moment when it came; whoever came before the
// clock was set forward, and is gone, must not hold the mark back for as long as the daemon runs.
TEST(BoundsTest, P10TheMarkFollowsAWallClockThatWasSetForward) {
  EngineHarness harness;
  const auto work = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      harness.EnqueueOk({.due = DueAfter{Millis(3000)}});
      for (const JobView& job : harness.LeaseNow(10)) {
        EXPECT_TRUE(harness.Call(Ack{*job.lease_token}).status.ok());
      }
      harness.Wait(Millis(1000));
    }
  };
  harness.Send(Lease{.queues = {"idle"}, .wait = kHour});
  work(10);
  harness.clock().StepWall(kHour);
  work(30);
  std::string value;
  const auto key = storage::kLowWaterMarkKey;
  ASSERT_TRUE(harness.store().Get(storage::Table::kMeta, key, &value).ok());
  const auto mark = WallFromMillis(static_cast<int64_t>(*storage::DecodeNumber(key, value)));
  EXPECT_LT(harness.now().wall - mark, Millis(10'000));
}

// Where the last scan of the dead began.
class NotesScansOfTheDead final : public ReadsThrough {
 public:
  using ReadsThrough::ReadsThrough;

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    if (table == storage::Table::kDead) {
      begin = storage::ParseDeadKey(from)->died;
    }
    return ReadsThrough::Scan(table, from, to, visit);
  }

  mutable WallTime begin;
};

// A store passes over every row that was deleted, while all wait.
TEST(BoundsTest, ListsAndChangesOfTheDeadBeginBehindThoseThatAreGone) {
  storage::MemoryJobStore store;
  const NotesScansOfTheDead reader(store);
  SimulatedClock clock(Now{.wall = WallFromMillis(1'800'000'000'000), .boot = BootTime(kHour)});
  auto loaded = Engine::Load({.boot_id = kBootId}, reader, clock.Sample());
  ASSERT_TRUE(loaded.ok());
  Engine& engine = **loaded;
  const auto commit = [&] {
    while (const auto sealed = engine.Seal(clock.Sample())) {
      ASSERT_TRUE(store.Commit(*sealed->batch).ok());
      engine.Committed(sealed->sequence);
    }
  };
  const auto bury = [&](Millis later) {
    clock.Advance(Millis(1));
    clock.StepWall(later - Millis(1));
    engine.Execute(
        1, Enqueue{{{.due = DueAfter{}, .payload = "p", .buried = true}}}, clock.Sample());
    return clock.Sample().wall;
  };
  const auto count_listed = [&] {
    static_cast<void>(engine.TakeReplies());
    engine.Execute(2, List{.queue = "default", .state = JobState::kDead}, clock.Sample());
    commit();
    const std::vector<Reply> replies = engine.TakeReplies();
    return std::get<JobList>(std::ranges::find(replies, RequestId{2}, &Reply::request)->body)
        .jobs.size();
  };
  bury(Millis(0));
  const WallTime second = bury(Millis(1000));
  commit();
  engine.Execute(3, Cancel{.job = JobId{1}}, clock.Sample());
  commit();
  EXPECT_EQ(count_listed(), 1U);
  EXPECT_EQ(count_listed(), 1U);
  EXPECT_EQ(reader.begin, second);

  // One that died on an earlier clock is found, also when its row is not durable yet.
  const WallTime older = bury(Millis(-500));
  static_cast<void>(count_listed());
  EXPECT_EQ(count_listed(), 2U);
  EXPECT_EQ(reader.begin, older);

  for (const bool is_dry : {true, false}) {
    engine.Execute(
        4,
        ChangeMany{.filter = {.queue = "default", .state = JobState::kDead}, .dry_run = is_dry},
        clock.Sample());
    EXPECT_EQ(reader.begin, older);
    commit();
  }
  EXPECT_EQ(count_listed(), 0U);
  EXPECT_EQ(count_listed(), 0U);
  EXPECT_GT(reader.begin, second);
  bury(Millis(-500));
  commit();
  EXPECT_EQ(count_listed(), 1U);
}

}  // namespace
}  // namespace delayd::engine
