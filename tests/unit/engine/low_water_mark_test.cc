#include "daemon/engine/low_water_mark.h"

#include <optional>

#include <gtest/gtest.h>

#include "wheel/timer.h"

namespace delayd::engine {
namespace {

WallTime MarkAt(int ms) {
  return WallTime(Millis(ms));
}

TEST(LowWaterMarkTest, WritersGoByWhatIsDecidedAndReadersByWhatIsCommitted) {
  LowWaterMark mark;
  mark.Restore(MarkAt(100));
  EXPECT_TRUE(mark.Raise(MarkAt(200), 7));
  EXPECT_TRUE(mark.Raise(MarkAt(300), 9));
  EXPECT_EQ(mark.decided(), MarkAt(300));
  EXPECT_EQ(mark.durable(), MarkAt(100));
  mark.Committed(8);
  EXPECT_EQ(mark.durable(), MarkAt(200));
  mark.Committed(9);
  EXPECT_EQ(mark.durable(), MarkAt(300));
}

TEST(LowWaterMarkTest, ItNeverGoesBack) {
  LowWaterMark mark;
  mark.Restore(MarkAt(100));
  EXPECT_FALSE(mark.Raise(MarkAt(100), 1));
  EXPECT_FALSE(mark.Raise(MarkAt(50), 2));
  mark.Committed(2);
  EXPECT_EQ(mark.decided(), MarkAt(100));
  EXPECT_EQ(mark.durable(), MarkAt(100));
}

TEST(LowWaterMarkTest, ItIsLookedForOncePerSoManyJobs) {
  LowWaterMark mark;
  EXPECT_FALSE(mark.IsLookedFor(60, 100));
  EXPECT_TRUE(mark.IsLookedFor(60, 100));
  EXPECT_FALSE(mark.IsLookedFor(60, 100));
}

TEST(BootOffsetsTest, TheLeastOfTheJobsThatMayWaitCounts) {
  BootOffsets offsets;
  EXPECT_EQ(offsets.Least(1000), std::nullopt);
  offsets.Add(Millis(70), 1000);
  offsets.Add(Millis(50), 2000);
  offsets.Add(Millis(60), 3000);
  EXPECT_EQ(offsets.Least(1000), Millis(50));
}

// The wheel is empty: it is due at no time.
TEST(BootOffsetsTest, WhereNothingWaitsThereIsNone) {
  BootOffsets offsets;
  offsets.Add(Millis(50), 2000);
  EXPECT_EQ(offsets.Least(2000), Millis(50));
  EXPECT_EQ(offsets.Least(2001), std::nullopt);
  EXPECT_EQ(offsets.Least(wheel::kNever), std::nullopt);
}

// The clock was set forward: what came before keeps the mark back until the last of it is over.
TEST(BootOffsetsTest, AGroupIsForgottenWhenNothingInTheWheelIsAsEarlyAsItsLast) {
  BootOffsets offsets;
  offsets.Add(Millis(50), 2000);
  offsets.Forget(1000);  // those so far are a group, and what comes is another
  offsets.Add(Millis(90'000), 5000);
  offsets.Forget(2000);
  EXPECT_EQ(offsets.Least(2000), Millis(50));
  offsets.Forget(2001);
  EXPECT_EQ(offsets.Least(2001), Millis(90'000));
}

}  // namespace
}  // namespace delayd::engine
