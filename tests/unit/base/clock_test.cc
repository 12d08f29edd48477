#include "base/clock.h"

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(SystemClockTest, BootTimeNeverGoesBack) {
  const SystemClock clock;
  Now last = clock.Sample();
  for (int i = 0; i < 1000; ++i) {
    const Now now = clock.Sample();
    EXPECT_GE(now.boot, last.boot);
    last = now;
  }
  EXPECT_GT(ToMillis(last.wall), 1'600'000'000'000);
}

TEST(SimulatedClockTest, StandsStillUntilMoved) {
  SimulatedClock clock({.wall = WallFromMillis(1000), .boot = BootFromMillis(10)});
  EXPECT_EQ(clock.Sample().wall, WallFromMillis(1000));
  clock.Advance(Millis(5));
  EXPECT_EQ(clock.Sample().wall, WallFromMillis(1005));
  EXPECT_EQ(clock.Sample().boot, BootFromMillis(15));
}

TEST(SimulatedClockTest, AStepMovesTheWallOnly) {
  SimulatedClock clock({.wall = WallFromMillis(1000), .boot = BootFromMillis(10)});
  clock.StepWall(Millis(-300));
  EXPECT_EQ(clock.Sample().wall, WallFromMillis(700));
  EXPECT_EQ(clock.Sample().boot, BootFromMillis(10));
}

TEST(BootIdTest, StaysTheSameWithinABoot) {
  EXPECT_EQ(CurrentBootId(), CurrentBootId());
}

}  // namespace
}  // namespace delayd
