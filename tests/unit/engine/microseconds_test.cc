// Due times between two milliseconds: both clocks in whole microseconds, and off each other.
#include <algorithm>
#include <map>
#include <random>

#include "tests/support/seed.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

std::optional<Micros> Until(const EngineHarness& harness, const Engine& engine) {
  return engine.UntilNextEvent(harness.now());
}

TEST(MicrosecondsTest, P2P3ARelativeJobCountsFromTheMicrosecondOfItsPromise) {
  EngineHarness harness;
  harness.clock().Advance(700us);
  const JobView job = harness.EnqueueOk(In(10ms));
  EXPECT_EQ(job.due, harness.now().wall + 10ms);
  // The clock was read rounded down.
  EXPECT_EQ(Until(harness, harness.engine()), 10ms + 1us);
  harness.Wait(10ms);
  EXPECT_TRUE(harness.LeaseNow().empty());
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kScheduled);
  harness.Wait(1us);
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kReady);
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].lateness, 0ms);
}

TEST(MicrosecondsTest, P2P3AnAbsoluteJobIsWokenForOnItsOwnClock) {
  EngineHarness harness;
  harness.clock().Advance(300us);
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 5ms}});
  EXPECT_EQ(Until(harness, harness.engine()), 4700us);
  harness.Wait(4699us);
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(1us);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(MicrosecondsTest, P2AStartKnowsAPromiseInWholeMillisecondsRoundedUp) {
  EngineHarness harness;
  harness.clock().Advance(700us);
  harness.EnqueueOk(In(10ms));
  harness.Restart();
  EXPECT_EQ(Until(harness, harness.engine()), 10'300us);
  harness.Wait(10'299us);
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(1us);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

// It is ready before what its record says; a worker that goes without an answer gives it back.
TEST(MicrosecondsTest, P3AHandOutThatNobodySawIsReadyAgainWithinTheMillisecond) {
  EngineHarness harness;
  harness.clock().Advance(100us);
  harness.EnqueueOk(In(10ms));
  harness.Wait(10ms + 1us);
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  ASSERT_TRUE(harness.Call(GiveBack{*leased[0].lease_token}).status.ok());
  harness.Wait(1ms);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(MicrosecondsTest, P3ANackWithADelayCountsFromTheMicrosecondToo) {
  EngineHarness harness;
  harness.EnqueueOk(In(0ms));
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  harness.clock().Advance(250us);
  ASSERT_TRUE(harness.Call(Nack{.token = *leased[0].lease_token, .delay = 3ms}).status.ok());
  harness.Wait(3ms);
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(1us);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

// From wake to wake as the owner goes, among promises at any moment, leases and starts.
TEST(MicrosecondsTest, P2P3EveryJobComesInItsMicrosecond) {
  SCOPED_TRACE("DELAYD_SEED=" + std::to_string(delayd::test::Seed()));
  std::mt19937_64 random(delayd::test::Seed());
  EngineHarness harness;

  struct Promise {
    BootMicros exact;
    BootMicros rounded;
  };

  std::map<JobId, Promise> promises;
  size_t handed_out = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    if (random() % 2 == 0) {
      const Millis delay(1 + static_cast<int64_t>(random() % (random() % 8 == 0 ? 100'000 : 20)));
      const Now now = harness.now();
      promises[harness.EnqueueOk(In(delay)).id] = {.exact = now.exact_boot() + delay + 1us,
                                                   .rounded = now.boot + delay + 1ms};
    }
    if (random() % 500 == 0) {
      harness.Restart();
      for (auto& [id, promise] : promises) {
        promise.exact = promise.rounded;
      }
    }
    const Micros any(static_cast<int64_t>(random() % 3000));
    harness.Wait(std::min(Until(harness, harness.engine()).value_or(any), any));
    for (const JobView& job : harness.LeaseNow(1000)) {
      ASSERT_EQ(harness.now().exact_boot(), promises.at(job.id).exact) << ToInt(job.id);
      ASSERT_TRUE(harness.Call(Ack{*job.lease_token}).status.ok());
      promises.erase(job.id);
      ++handed_out;
    }
    for (const auto& [id, promise] : promises) {
      ASSERT_GT(promise.exact, harness.now().exact_boot()) << ToInt(id);
    }
  }
  EXPECT_GT(handed_out, 1000U);
}

}  // namespace
}  // namespace delayd::engine
