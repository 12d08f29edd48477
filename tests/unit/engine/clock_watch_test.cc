// The rules for a wall clock that cannot be believed (docs/decisions/0075). Times here are wall
// times unless they say otherwise.
#include "daemon/engine/clock_watch.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

const Now kStart{WallFromMillis(1'800'000'000'000), BootFromMillis(5'000'000)};
constexpr auto kDay = 24h;

class ClockWatchTest : public ::testing::Test {
 protected:
  // A start with a clock that shows `ahead` more than the highest time of an earlier boot.
  ClockWatch StartAhead(Millis ahead, ClockWatchOptions options = {}) {
    clock_.StepWall(ahead);
    return ClockWatch(
        options, ClockSeen{.wall = kStart.wall, .boot_id = 1, .boot = {}}, 2, clock_.Sample());
  }

  Now Trusted(ClockWatch* watch) { return watch->Trust(clock_.Sample()); }

  SimulatedClock clock_{kStart};
};

TEST_F(ClockWatchTest, ANewStoreBelievesAnyClock) {
  ClockWatch watch({}, std::nullopt, 2, kStart);
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall);
}

TEST_F(ClockWatchTest, AnOrdinaryStartIsTrusted) {
  EXPECT_EQ(StartAhead(20 * kDay).state(), ClockState::kTrusted);
}

TEST_F(ClockWatchTest, AStartBehindTheHighestTimeSeenIsSuspectAndFollowed) {
  ClockWatch watch = StartAhead(-1h);
  EXPECT_EQ(watch.state(), ClockState::kBehind);
  EXPECT_EQ(watch.difference(), 1h);
  EXPECT_EQ(Trusted(&watch).wall, clock_.Sample().wall) << "nothing is early by a clock behind";
  clock_.Advance(1h);
  Trusted(&watch);
  EXPECT_EQ(watch.state(), ClockState::kTrusted) << "it has caught up";
}

TEST_F(ClockWatchTest, AStartFarAheadIsHeldAtTheLastTimeBelieved) {
  ClockWatch watch = StartAhead(31 * kDay);
  EXPECT_EQ(watch.state(), ClockState::kHeld);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall);
  clock_.Advance(10min);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall + 10min) << "real time goes on";
  EXPECT_EQ(Trusted(&watch).boot, clock_.Sample().boot) << "the boot clock is not touched";
}

TEST_F(ClockWatchTest, WithinOneBootTheTimeSinceTheLastRunCounts) {
  clock_.Advance(60 * kDay);
  const ClockWatch watch(
      {}, ClockSeen{.wall = kStart.wall, .boot_id = 2, .boot = kStart.boot}, 2, clock_.Sample());
  EXPECT_EQ(watch.state(), ClockState::kTrusted) << "sixty days have passed, on both clocks";
}

TEST_F(ClockWatchTest, AHoldEndsWhenTheClockIsPutRight) {
  ClockWatch watch = StartAhead(100 * kDay);
  clock_.StepWall(-99 * kDay);
  EXPECT_EQ(Trusted(&watch).wall, clock_.Sample().wall);
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
}

TEST_F(ClockWatchTest, AClockThatWasFarBehindAndIsPutRightIsTrusted) {
  ClockWatch watch({}, std::nullopt, 2, kStart);
  clock_.StepWall(-20'000 * kDay);
  Trusted(&watch);
  EXPECT_EQ(watch.state(), ClockState::kBehind);
  clock_.Advance(40 * kDay);
  clock_.StepWall(10'000 * kDay);
  Trusted(&watch);
  EXPECT_EQ(watch.state(), ClockState::kBehind) << "mended by half";
  clock_.StepWall(10'000 * kDay);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall + 40 * kDay) << "this time was seen before";
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
}

TEST_F(ClockWatchTest, AStartFarBehindIsMendedLikeAnyOther) {
  ClockWatch watch = StartAhead(-20'000 * kDay);
  EXPECT_EQ(watch.state(), ClockState::kBehind);
  clock_.StepWall(20'000 * kDay);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall);
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
}

TEST_F(ClockWatchTest, AClockThatWasBehindIsHeldFarBeyondWhatWasSeen) {
  ClockWatch watch = StartAhead(-1 * kDay);
  clock_.StepWall(32 * kDay);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall - 1 * kDay) << "at the last time believed";
  EXPECT_EQ(watch.state(), ClockState::kHeld);
}

TEST_F(ClockWatchTest, WhatWasSeenBeforeTheClockWasAcceptedCountsNoLonger) {
  ClockWatch watch({}, std::nullopt, 2, kStart);
  clock_.StepWall(-60 * kDay);
  watch.Accept(clock_.Sample());
  clock_.StepWall(60 * kDay);
  Trusted(&watch);
  EXPECT_EQ(watch.state(), ClockState::kHeld);
}

TEST_F(ClockWatchTest, AHoldEndsAtTheOperatorsOrTheKernelsWord) {
  ClockWatch watch = StartAhead(100 * kDay);
  watch.Accept(clock_.Sample());
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall + 100 * kDay);
}

TEST_F(ClockWatchTest, AHoldEndsAfterHoldMax) {
  ClockWatch watch = StartAhead(100 * kDay, {.max_jump = 30 * kDay, .hold_max = 1h});
  clock_.Advance(1h - 1ms);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall + 1h - 1ms);
  clock_.Advance(1ms);
  EXPECT_EQ(Trusted(&watch).wall, clock_.Sample().wall);
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
}

TEST_F(ClockWatchTest, AStepFarAheadWhileRunningIsHeldToo) {
  ClockWatch watch({}, std::nullopt, 2, kStart);
  clock_.Advance(5s);
  clock_.StepWall(3650 * kDay);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall + 5s);
  EXPECT_EQ(watch.state(), ClockState::kHeld);
  EXPECT_EQ(watch.suspicions(), 1U);
}

TEST_F(ClockWatchTest, AStepOfATimeServiceIsFollowedEitherWay) {
  ClockWatch watch({}, std::nullopt, 2, kStart);
  clock_.StepWall(5min);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall + 5min);
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
  clock_.StepWall(-5min);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall);
  EXPECT_EQ(watch.state(), ClockState::kBehind);
  watch.Accept(clock_.Sample());
  EXPECT_EQ(watch.state(), ClockState::kTrusted) << "the kernel knows better";
}

TEST_F(ClockWatchTest, ALeapSecondIsNothingToTalkAbout) {
  ClockWatch watch({}, std::nullopt, 2, kStart);
  clock_.StepWall(-1s);
  Trusted(&watch);
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
}

TEST_F(ClockWatchTest, ASuspendIsNoJump) {
  ClockWatch watch({}, std::nullopt, 2, kStart);
  clock_.Advance(90 * kDay);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall + 90 * kDay);
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
}

TEST_F(ClockWatchTest, AMaxJumpOfZeroHoldsNothing) {
  ClockWatch watch = StartAhead(36500 * kDay, {.max_jump = Millis(0)});
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
}

// ---- The engine behind a watch ----

TEST(ClockRuleTest, P2AHeldClockFiresNoAbsoluteJobAndRelativeOnesExactly) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 10 * kDay}, .payload = "absolute"});
  harness.EnqueueOk(In(60s, "relative"));
  ClockWatch watch({}, std::nullopt, kBootId, harness.now());
  SimulatedClock machine(harness.now());
  machine.StepWall(3650 * kDay);
  const auto turn = [&] {
    while (harness.engine().Advance(watch.Trust(machine.Sample()))) {
    }
    return harness.engine().stats();
  };
  EXPECT_EQ(turn().ready, 0U);
  machine.Advance(60s);
  EXPECT_EQ(turn().ready, 0U) << "a delay is over a millisecond later, for clocks are rounded down";
  machine.Advance(1ms);
  EXPECT_EQ(turn().ready, 1U);
  watch.Accept(machine.Sample());
  EXPECT_EQ(turn().ready, 2U) << "accepted: what is due by it fires";
}

TEST(ClockRuleTest, InARepeatedSecondAJobIsHandedOutOnceAtItsFirstPass) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 10s}});
  harness.Wait(10'500ms);
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  harness.clock().StepWall(-1s);  // the second is lived again
  harness.Turn();
  harness.Wait(600ms);
  EXPECT_TRUE(harness.LeaseNow().empty());
  EXPECT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  harness.Wait(1s);
  EXPECT_TRUE(harness.LeaseNow().empty());
}

TEST(ClockRuleTest, AfterASuspendOverdueJobsComeOldestFirst) {
  EngineHarness harness;
  const JobId second = harness.EnqueueOk(In(20s)).id;
  const JobId first = harness.EnqueueOk({.due = DueAt{harness.now().wall + 10s}}).id;
  harness.Wait(8h);
  const auto leased = harness.LeaseNow(2);
  ASSERT_EQ(leased.size(), 2U);
  EXPECT_EQ(leased[0].id, first);
  EXPECT_EQ(leased[1].id, second);
}

TEST(ClockRuleTest, TimesThatCannotBeAreRefused) {
  EngineHarness harness;
  const auto reason = [&harness](DueSpec due) {
    return harness.ReasonOf(Enqueue{{{.due = due, .payload = "p"}}});
  };
  EXPECT_EQ(reason(DueAfter{-1ms}), "invalid_delay");
  EXPECT_EQ(reason(DueAfter{Millis(limits::kDelayMsMax + 1)}), "invalid_delay");
  EXPECT_EQ(reason(DueAfter{Millis::max()}), "invalid_delay");
  EXPECT_EQ(reason(DueAt{WallFromMillis(-1)}), "invalid_due");
  EXPECT_EQ(reason(DueAt{WallFromMillis(limits::kWallMsMax + 1)}), "invalid_due");
  // In the last years the end of a delay can be too late though the delay is not too long.
  harness.clock().StepWall(Millis(limits::kWallMsMax) - harness.now().wall.time_since_epoch() - 1h);
  EXPECT_EQ(reason(DueAfter{2h}), "invalid_delay");
  harness.EnqueueOk(In(30min));
}

ClockSeen SeenBy(const EngineHarness& harness) {
  std::string value;
  EXPECT_TRUE(const_cast<EngineHarness&>(harness)
                  .store()
                  .Get(storage::Table::kMeta, storage::kClockKey, &value)
                  .ok());
  const auto record = storage::DecodeClockRecord(storage::kClockKey, value);
  EXPECT_TRUE(record.ok());
  return {.wall = record->wall, .boot_id = record->boot_id, .boot = record->boot};
}

TEST(ClockRuleTest, TheHighestTimeIsWrittenWithEveryCommitAndNeverGoesBack) {
  EngineHarness harness;
  harness.EnqueueOk(In(1h));
  const WallTime high = harness.now().wall;
  EXPECT_EQ(SeenBy(harness).wall, high);
  harness.clock().StepWall(-1h);
  harness.EnqueueOk(In(1h));
  EXPECT_EQ(SeenBy(harness).wall, high);
  harness.Restart();
  harness.EnqueueOk(In(1h));
  EXPECT_EQ(SeenBy(harness).wall, high) << "not over a restart either";
  EXPECT_TRUE(harness.Call(AcceptClock{}).status.ok());
  EXPECT_EQ(SeenBy(harness).wall, harness.now().wall) << "only when the clock is accepted";
}

TEST(ClockRuleTest, WhatIsWrittenOfTheTimeIsOffByLessThanWasAllowed) {
  EngineHarness harness(EngineOptions{.clock_note_min = 1s});
  harness.EnqueueOk(In(1h));
  const ClockSeen first = SeenBy(harness);
  harness.clock().Advance(999ms);
  harness.EnqueueOk(In(1h));
  EXPECT_EQ(SeenBy(harness).wall, first.wall);
  harness.clock().Advance(1ms);
  harness.EnqueueOk(In(1h));
  EXPECT_EQ(SeenBy(harness).wall, harness.now().wall);
  harness.clock().StepWall(1s);
  harness.EnqueueOk(In(1h));
  EXPECT_EQ(SeenBy(harness).wall, harness.now().wall) << "a clock that was set is no small thing";
  harness.clock().StepWall(-1h);
  harness.clock().Advance(1s);
  harness.EnqueueOk(In(1h));
  EXPECT_EQ(SeenBy(harness).boot, harness.now().boot) << "both clocks count";
  harness.Restart(kBootId + 1);
  EXPECT_EQ(SeenBy(harness).boot_id, kBootId + 1) << "a new boot is written at once";
}

TEST(ClockRuleTest, WhileJobsArePendingTheTimeIsWrittenEveryTenSeconds) {
  EngineOptions options;
  options.clock_note_interval = 10s;
  EngineHarness harness(options);
  EXPECT_EQ(harness.UntilNextEvent(), std::nullopt) << "nothing to watch over";
  harness.EnqueueOk({.due = DueAt{harness.now().wall + 1h}});
  EXPECT_EQ(harness.UntilNextEvent(), 10s);
  harness.Wait(10s);
  EXPECT_EQ(SeenBy(harness).wall, harness.now().wall);
  EXPECT_EQ(harness.UntilNextEvent(), 10s);
}

TEST_F(ClockWatchTest, ABootClockThatIsBehindItsOwnLastReadingTellsNothing) {
  const ClockSeen last{.wall = kStart.wall, .boot_id = 2, .boot = kStart.boot + 1h};
  ClockWatch watch({}, last, 2, kStart);
  EXPECT_EQ(watch.state(), ClockState::kTrusted);
  EXPECT_EQ(Trusted(&watch).wall, kStart.wall);
}

TEST(ClockStateTest, EachStateHasItsName) {
  EXPECT_EQ(ClockStateName(ClockState::kTrusted), "trusted");
  EXPECT_EQ(ClockStateName(ClockState::kBehind), "behind");
  EXPECT_EQ(ClockStateName(ClockState::kHeld), "held");
}

}  // namespace
}  // namespace delayd::engine
