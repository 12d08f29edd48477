#include "daemon/engine/low_water_mark.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace delayd::engine
