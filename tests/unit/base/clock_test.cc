#include "base/clock.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

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

// A container that is started anew with another offset has another boot clock.
TEST(BootIdTest, DiffersWhereATimeNamespaceHasAnotherBootClock) {
  const test::TempDir dir;
  const auto id_with = [&dir](const std::string& offsets) {
    std::ofstream(dir.Sub("boot_id")) << "0123456789abcdef-0123-4567-89ab-cdef01234567\n";
    std::ofstream(dir.Sub("offsets")) << offsets;
    return CurrentBootId(dir.Sub("boot_id"), dir.Sub("offsets"));
  };
  const uint64_t plain = 0x0123456789abcdef;
  EXPECT_EQ(id_with(""), plain);
  EXPECT_EQ(id_with("monotonic           0         0\nboottime            0         0\n"), plain);
  EXPECT_EQ(id_with("monotonic          60         0\nboottime            0         0\n"), plain);
  const uint64_t later = id_with("monotonic  0  0\nboottime  86400  0\n");
  EXPECT_NE(later, plain);
  EXPECT_NE(id_with("monotonic  0  0\nboottime  86400  1\n"), later);
  EXPECT_NE(id_with("monotonic  0  0\nboottime  -86400  0\n"), later);
}

}  // namespace
}  // namespace delayd
