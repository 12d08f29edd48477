#include "daemon/engine/wall_offsets.h"

#include <optional>

#include <gtest/gtest.h>

namespace delayd::engine {
namespace {

Now BothClocksAt(Millis boot, Millis wall) {
  return {.wall = WallTime(wall), .boot = BootTime(boot)};
}

TEST(WallOffsetsTest, WithoutARelativeJobTheWallClockAloneDecides) {
  const WallOffsets offsets;
  const Now now = BothClocksAt(Millis(10), Millis(1000));
  EXPECT_EQ(offsets.LatestKey(now), now.wall);
  EXPECT_EQ(offsets.FirstKeyNotDue(now), now.wall);
}

// Those promised before are due by the boot clock, so keyed ahead of what the wall clock shows now.
TEST(WallOffsetsTest, AWallClockThatWasSetBackLeavesDueKeysAheadOfIt) {
  WallOffsets offsets;
  offsets.Note(BothClocksAt(Millis(10), Millis(1000)));
  offsets.Note(BothClocksAt(Millis(11), Millis(501)));
  const Now now = BothClocksAt(Millis(20), Millis(510));
  EXPECT_EQ(offsets.LatestKey(now), WallTime(Millis(1010)));
  EXPECT_EQ(offsets.FirstKeyNotDue(now), WallTime(Millis(510)));
}

TEST(WallOffsetsTest, AWallClockThatWasSetForwardLeavesKeysBehindItThatAreNotDue) {
  WallOffsets offsets;
  offsets.Note(BothClocksAt(Millis(10), Millis(1000)));
  const Now now = BothClocksAt(Millis(20), Millis(9000));
  EXPECT_EQ(offsets.LatestKey(now), WallTime(Millis(9000)));
  EXPECT_EQ(offsets.FirstKeyNotDue(now), WallTime(Millis(1010)));
}

TEST(WallOffsetsTest, EachIsWrittenWhenItChanges) {
  WallOffsets offsets;
  offsets.Restore(Millis(490), Millis(990));
  offsets.Note(BothClocksAt(Millis(10), Millis(1000)));
  EXPECT_EQ(offsets.TakeMost(), std::nullopt);
  EXPECT_EQ(offsets.TakeLeast(), std::nullopt);
  offsets.Note(BothClocksAt(Millis(10), Millis(1001)));
  EXPECT_EQ(offsets.TakeMost(), Millis(991));
  EXPECT_EQ(offsets.TakeMost(), std::nullopt);
  offsets.Note(BothClocksAt(Millis(10), Millis(400)));
  EXPECT_EQ(offsets.TakeLeast(), Millis(390));
  EXPECT_EQ(offsets.TakeLeast(), std::nullopt);
}

// The store's may be of an earlier boot, and would be taken for this one's at the next start.
TEST(WallOffsetsTest, ThatNothingIsKnownYetIsWrittenToo) {
  WallOffsets offsets;
  EXPECT_LT(offsets.TakeMost().value(), Millis(0));
  EXPECT_EQ(offsets.TakeLeast(), Millis::max());
  EXPECT_EQ(offsets.TakeMost(), std::nullopt);
}

}  // namespace
}  // namespace delayd::engine
