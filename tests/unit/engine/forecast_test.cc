#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/limits.h"
#include "tests/unit/engine/engine_harness.h"
#include "tests/unit/engine/reads_through.h"

namespace delayd::engine {
namespace {

std::vector<ForecastView::Step> Steps(EngineHarness* harness, const Forecast& command) {
  Reply reply = harness->Call(command);
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  return reply.status.ok() ? std::get<ForecastView>(reply.body).steps
                           : std::vector<ForecastView::Step>();
}

Forecast From(const EngineHarness& harness, Millis length, Millis step) {
  return {.from = harness.now().wall, .to = harness.now().wall + length, .step = step};
}

TEST(ForecastTest, CountsNearAndFarJobsOfEachStep) {
  EngineHarness harness(EngineOptions{.horizon = Millis(60'000)});
  for (int i = 0; i < 100; ++i) {
    harness.EnqueueOk({.queue = i % 4 == 0 ? "a" : "b", .due = DueAfter{Millis(1 + i * 6000)}});
  }
  const auto all = Steps(&harness, From(harness, Millis(600'000), Millis(60'000)));
  ASSERT_EQ(all.size(), 10U);
  for (const auto& step : all) {
    EXPECT_EQ(step.count, 10U);
    EXPECT_FALSE(step.approximate);
  }
  Forecast one = From(harness, Millis(600'000), Millis(600'000));
  one.queue = "a";
  EXPECT_EQ(Steps(&harness, one).at(0).count, 25U);
}

TEST(ForecastTest, LeavesOutWhatIsDueAlready) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  harness.EnqueueOk(In(Millis(1000)));
  EXPECT_EQ(Steps(&harness, From(harness, Millis(5000), Millis(5000))).at(0).count, 1U);
}

// It is scheduled until a turn has made it ready, as in a list.
TEST(ForecastTest, CountsWhatHasFallenDueOnDiskSinceTheLastTurn) {
  EngineHarness harness(EngineOptions{.memory_jobs_max = 16});
  for (int i = 0; i < 64; ++i) {
    harness.EnqueueOk(In(Millis(10)));
  }
  harness.Wait(Millis(20));  // more are ready than there is room for: the queue lags
  harness.EnqueueOk(In(Millis(100)));
  Forecast command = From(harness, Millis(1000), Millis(1000));
  EXPECT_EQ(Steps(&harness, command).at(0).count, 1U);
  harness.Pass(Millis(101));
  EXPECT_EQ(Steps(&harness, command).at(0).count, 1U);
}

TEST(ForecastTest, TheLastStepEndsWithTheForecast) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(1000)));
  const auto steps = Steps(&harness, From(harness, Millis(2500), Millis(1000)));
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[2].to - steps[2].from, Millis(500));
  EXPECT_EQ(steps[1].count, 1U);
}

TEST(ForecastTest, CountsWhatABatchUnderWayMovesOnce) {
  EngineHarness harness(EngineOptions{.horizon = Millis(1000)});
  const JobView job = harness.EnqueueOk(In(Millis(100'000)));
  harness.Send(Reschedule{.job = job.id, .due = DueAfter{Millis(300'000)}});
  harness.Send(Enqueue{{In(Millis(300'000))}});
  const RequestId forecast = harness.Send(From(harness, Millis(400'000), Millis(200'000)));
  EXPECT_FALSE(harness.HasReply(forecast));  // P1: it tells of what is not durable
  harness.CommitAll();
  const auto steps = std::get<ForecastView>(harness.Take(forecast).body).steps;
  EXPECT_EQ(steps.at(0).count, 0U);
  EXPECT_EQ(steps.at(1).count, 2U);
}

TEST(ForecastTest, P1WaitsForTheJobsInMemoryThatItCounts) {
  EngineHarness harness;
  harness.Send(Enqueue{{In(Millis(1000))}});
  const RequestId forecast = harness.Send(From(harness, Millis(5000), Millis(5000)));
  EXPECT_FALSE(harness.HasReply(forecast));
  harness.CommitAll();
  EXPECT_EQ(std::get<ForecastView>(harness.Take(forecast).body).steps.at(0).count, 1U);
}

// Far more jobs than one turn may look at.
class BigForecastTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kJobs = 200'000;

  void Fill(const std::function<WallTime(uint64_t)>& due) {
    for (uint64_t begin = 0; begin < kJobs; begin += 1000) {
      Enqueue batch;
      for (uint64_t i = begin; i < begin + 1000; ++i) {
        batch.jobs.push_back({.due = DueAt{due(i)}});
      }
      harness_.Send(std::move(batch));
      harness_.CommitAll();
    }
  }

  static void ExpectNear(uint64_t count, uint64_t expected) {
    EXPECT_GT(count, expected * 3 / 4);
    EXPECT_LT(count, expected * 5 / 4);
  }

  EngineHarness harness_{EngineOptions{.horizon = Millis(1000)}};
};

TEST_F(BigForecastTest, EstimatesWhatItCannotCountAndSaysSo) {
  const WallTime begin = harness_.now().wall + std::chrono::hours(1);
  Fill([&](uint64_t i) { return begin + Millis(i * 7919 % 3'600'000); });
  for (const auto& step :
       Steps(&harness_,
             {.from = begin, .to = begin + std::chrono::hours(1), .step = Millis(360'000)})) {
    EXPECT_TRUE(step.approximate);
    ExpectNear(step.count, kJobs / 10);
  }
}

TEST_F(BigForecastTest, SeesThatAllAreDueAtOneMoment) {
  const WallTime midnight = harness_.now().wall + std::chrono::hours(9);
  Fill([&](uint64_t) { return midnight; });
  const auto steps = Steps(
      &harness_,
      {.from = midnight - Millis(90'000), .to = midnight + Millis(90'000), .step = Millis(60'000)});
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].count, 0U);
  ExpectNear(steps[1].count, kJobs);
  EXPECT_EQ(steps[2].count, 0U);
}

TEST_F(BigForecastTest, ABurstStandsForItselfInALongStep) {
  const WallTime begin = harness_.now().wall + std::chrono::hours(2);
  Fill([&](uint64_t i) { return begin + Millis(i / 500); });
  for (const auto length : {std::chrono::hours(1), std::chrono::hours(24)}) {
    const auto steps =
        Steps(&harness_,
              {.from = harness_.now().wall, .to = begin + std::chrono::hours(24), .step = length});
    const auto sum = std::accumulate(
        steps.begin(), steps.end(), uint64_t{0}, [](uint64_t total, const auto& step) {
          return total + step.count;
        });
    ExpectNear(sum, kJobs);
  }
}

// Of more jobs in memory than are looked at, those of a step may all be among the others.
TEST(ForecastTest, AStepOfWhichNoJobInMemoryWasLookedAtIsNoCertainNone) {
  EngineHarness harness;
  constexpr size_t kJobs = limits::kForecastSlotsMax + 1000;
  for (size_t i = 0; i < kJobs; i += 1000) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, In(Millis(1000)))});
    harness.CommitAll();
  }
  harness.Send(Enqueue{{In(Millis(90'000)), In(Millis(210'000))}});
  harness.CommitAll();
  const auto steps = Steps(&harness, From(harness, Millis(1'200'000), Millis(120'000)));
  for (size_t i = 0; i < 5; ++i) {  // within the horizon
    EXPECT_TRUE(steps[i].approximate) << i;
  }
  EXPECT_FALSE(steps[6].approximate) << "all of it is on disk, and counted";
}

// Memory is being made room in: what goes is counted one by one, as what is on disk, whether it is
// there still or not.
TEST(ForecastTest, WhatIsLeavingMemoryIsCountedExactly) {
  constexpr int64_t kPairs = limits::kForecastSlotsMax / 2 + 1000;
  EngineHarness harness(EngineOptions{.memory_jobs_max = 3 * kPairs / 2, .sweep_slots = 16});
  const WallTime begin = harness.now().wall;
  for (int64_t i = 0; i < kPairs;) {
    Enqueue batch;
    for (const int64_t end = std::min(i + 500, kPairs); i < end; ++i) {
      // Two of three of the later ones in every other slot.
      const JobSpec early{.due = DueAt{begin + Millis(60'000)}};
      const JobSpec late{.due = DueAt{begin + Millis(300'000 + i)}};
      batch.jobs.push_back(i % 3 == 0 ? late : early);
      batch.jobs.push_back(i % 3 == 0 ? early : late);
    }
    harness.Send(std::move(batch));
    harness.CommitAll();
  }
  EXPECT_TRUE(harness.engine().Advance(harness.now()));  // half of the later ones are to go
  const auto at = [begin](int64_t ms) { return begin + Millis(ms); };
  const RequestId forecast = harness.Send(Forecast{
      .from = at(300'000 + kPairs - 10'000), .to = at(300'000 + kPairs), .step = Millis(2'000)});
  harness.CommitAll();
  const auto steps = std::get<ForecastView>(harness.Take(forecast).body).steps;
  ASSERT_EQ(steps.size(), 5U);
  for (const auto& step : steps) {
    EXPECT_FALSE(step.approximate);
    EXPECT_EQ(step.count, 2'000U);
  }
}

// What comes before the frontier is on disk in part, and the jobs in memory have rows there too.
TEST(ForecastTest, JobsInMemoryAreNotEstimatedAgainWhileAQueueLags) {
  EngineHarness harness(EngineOptions{.memory_jobs_max = 120'000});
  for (int i = 0; i < 60; ++i) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, ForQueue("near", Millis(200'000 + i)))});
    harness.CommitAll();
  }
  for (int i = 0; i < 150; ++i) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, ForQueue("backlog", Millis(0)))});
    harness.Turn();
  }
  harness.Wait(Millis(1000));
  ASSERT_GT(harness.engine().stats().scheduled, 60'000U) << "the backlog lags";
  Forecast command = From(harness, Millis(600'000), Millis(600'000));
  EXPECT_EQ(Steps(&harness, command).at(0).count, 60'000U);
  command.queue = "near";
  EXPECT_EQ(Steps(&harness, command).at(0).count, 60'000U);
}

TEST(ForecastTest, CountsAFewThousandJobsHoweverTheyAreSpread) {
  EngineHarness harness(EngineOptions{.horizon = Millis(1000)});
  const WallTime begin = harness.now().wall + std::chrono::hours(2);
  for (int i = 0; i < 10; ++i) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, {.due = DueAt{begin + Millis(i % 3)}})});
  }
  harness.CommitAll();
  for (const Millis step : {Millis(std::chrono::hours(12)), Millis(std::chrono::hours(1000))}) {
    const auto steps = Steps(&harness, From(harness, std::chrono::hours(30 * 24), step));
    EXPECT_EQ(steps.at(0).count, 10'000U);
    EXPECT_FALSE(steps[0].approximate);
  }
}

TEST(ForecastTest, RefusesWhatCannotBeForeseen) {
  EngineHarness harness;
  EXPECT_EQ(harness.ReasonOf(From(harness, Millis(0), Millis(1))), "invalid_range");
  EXPECT_EQ(harness.ReasonOf(From(harness, Millis(10), Millis(0))), "invalid_range");
  EXPECT_EQ(harness.ReasonOf(From(harness, Millis(1001), Millis(1))), "too_many_steps");
  EXPECT_TRUE(harness.Call(From(harness, Millis(1000), Millis(1))).status.ok());
  Forecast nowhere = From(harness, Millis(10), Millis(1));
  nowhere.queue = "nowhere";
  EXPECT_EQ(harness.ReasonOf(nowhere), "not_found");
}

// Fails the n-th scan, from 0 on.
class FailingScan final : public ReadsThrough {
 public:
  using ReadsThrough::ReadsThrough;

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return scans_until_failure-- == 0 ? Unavailable("the disk does not answer", "storage_io")
                                      : ReadsThrough::Scan(table, from, to, visit);
  }

  mutable int scans_until_failure = -1;
};

// In each of so many steps more jobs at one moment than may be counted, there are that many steps.
class BurstForecastTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBursts = 1000;
  static constexpr uint64_t kJobs = 40;

  BurstForecastTest() {
    for (uint64_t burst = 0; burst < kBursts; ++burst) {
      const JobSpec spec{.due = DueAt{Begin() + Millis(1000 * burst + 500)}};
      harness_.Send(Enqueue{std::vector<JobSpec>(kJobs, spec)});
    }
    harness_.CommitAll();
  }

  WallTime Begin() const { return start_ + std::chrono::hours(1); }

  Forecast Fine() const {
    return {.from = Begin(), .to = Begin() + Millis(1'000'000), .step = Millis(1000)};
  }

  EngineHarness harness_{EngineOptions{.horizon = Millis(1000)}};
  WallTime start_ = harness_.now().wall;
};

TEST_F(BurstForecastTest, CountsTheSoonestAndAsManyOfTheOthersAndEstimatesTheRest) {
  const auto steps = Steps(&harness_, Fine());
  ASSERT_EQ(steps.size(), kBursts);
  for (size_t i = 0; i < kBursts; ++i) {
    EXPECT_EQ(steps[i].count, kJobs) << "step " << i;  // this store's estimates are exact
    if (i < limits::kForecastRowsMax / kJobs) {
      EXPECT_FALSE(steps[i].approximate) << "step " << i;
    }
  }
}

// As a user found it: what is looked at first says nothing of the burst.
TEST(ForecastTest, SeesABurstLateInAStepThatBeginsEmpty) {
  EngineHarness harness(EngineOptions{.horizon = Millis(1000)});
  const WallTime far = harness.now().wall + std::chrono::hours(30 * 24);
  for (int i = 0; i < 20; ++i) {
    harness.Send(Enqueue{
        std::vector<JobSpec>(1000, {.due = DueAt{harness.now().wall + std::chrono::hours(1)}})});
  }
  for (int i = 0; i < 450; ++i) {
    harness.Send(Enqueue{std::vector<JobSpec>(67, {.due = DueAt{far + Millis(2 * i)}})});
  }
  harness.CommitAll();
  const auto steps =
      Steps(&harness, From(harness, std::chrono::hours(31 * 24), std::chrono::hours(24)));
  EXPECT_EQ(steps.at(0).count, 20'000U);
  EXPECT_EQ(steps.at(29).count + steps.at(30).count, 450U * 67U);
}

// Counts what a scan shows.
class RowsShown final : public ReadsThrough {
 public:
  using ReadsThrough::ReadsThrough;

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return ReadsThrough::Scan(table, from, to, [&](std::string_view key, std::string_view value) {
      ++rows;
      return visit(key, value);
    });
  }

  StatusOr<std::vector<uint64_t>> EstimateRows(
      storage::Table /*table*/, std::span<const storage::KeyRange> ranges) const override {
    return std::vector<uint64_t>(ranges.size(), estimate);
  }

  uint64_t estimate = 0;
  mutable uint64_t rows = 0;
};

TEST_F(BurstForecastTest, LooksAtSoManyRowsAndNoMoreWhateverTheStoreSays) {
  RowsShown reader(harness_.store());
  auto engine = Engine::Load({.boot_id = kBootId, .horizon = Millis(1000)}, reader, harness_.now());
  ASSERT_TRUE(engine.ok());
  for (const uint64_t estimate : std::vector<uint64_t>{0, 20, 40, 1'000'000}) {
    reader.estimate = estimate;
    reader.rows = 0;
    (*engine)->Execute(1, Fine(), harness_.now());
    // One more ends a scan.
    EXPECT_LE(reader.rows, 2 * limits::kForecastRowsMax + kBursts + 1) << estimate;
    EXPECT_GE(reader.rows, limits::kForecastRowsMax);
  }
}

TEST_F(BurstForecastTest, AScanThatFailsEndsIt) {
  FailingScan reader(harness_.store());
  for (int n = 0; n < 40; ++n) {
    auto engine =
        Engine::Load({.boot_id = kBootId, .horizon = Millis(1000)}, reader, harness_.now());
    ASSERT_TRUE(engine.ok());
    reader.scans_until_failure = n;
    (*engine)->Execute(1, Fine(), harness_.now());
    EXPECT_EQ((*engine)->fatal().code(), StatusCode::kUnavailable) << n;
    reader.scans_until_failure = -1;
  }
}

}  // namespace
}  // namespace delayd::engine
