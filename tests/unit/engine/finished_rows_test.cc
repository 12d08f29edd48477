#include "daemon/engine/finished_rows.h"

#include <optional>

#include <gtest/gtest.h>

#include "base/limits.h"

namespace delayd::engine {
namespace {

constexpr Millis kRetentionOfAll{3'600'000};

Now BothClocksAt(Millis time) {
  return {.wall = WallTime(Millis(1'000'000'000) + time), .boot = BootTime(time)};
}

class FinishedRowsTest : public ::testing::Test {
 protected:
  FinishedRowsTest() { rows_.SetRetention(kRetentionOfAll); }

  FinishedRows rows_;
};

TEST_F(FinishedRowsTest, ATrimWaitsUntilTheOldestHasBeenKeptForLongEnough) {
  EXPECT_EQ(rows_.next_trim(), std::nullopt);
  const Now now = BothClocksAt(Millis(5000));
  rows_.Add(1, now.wall, now);
  rows_.Add(2, now.wall + Millis(7), BothClocksAt(Millis(5007)));
  EXPECT_EQ(rows_.next_trim(), now.boot + kRetentionOfAll);
  EXPECT_FALSE(rows_.TakeTrim(BothClocksAt(Millis(5000) + kRetentionOfAll - Millis(1))));
  EXPECT_TRUE(rows_.TakeTrim(BothClocksAt(Millis(5000) + kRetentionOfAll)));
  EXPECT_FALSE(rows_.TakeTrim(BothClocksAt(Millis(5000) + kRetentionOfAll)));
}

TEST_F(FinishedRowsTest, OneThatIsOverdueWaitsForALittle) {
  const Now now = BothClocksAt(Millis(5000));
  rows_.ScheduleTrim(now.wall - 2 * kRetentionOfAll, now);
  EXPECT_EQ(rows_.next_trim(), now.boot + Millis(limits::kTrimIntervalMsMin));
}

// A clock that was ahead has been put right: what finishes now is the older.
TEST_F(FinishedRowsTest, TheEarliestOfABatchDecides) {
  const Now now = BothClocksAt(Millis(5000));
  rows_.Add(1, now.wall + 5 * kRetentionOfAll, now);
  rows_.Add(1, now.wall, now);
  EXPECT_EQ(rows_.next_trim(), now.boot + kRetentionOfAll);
  EXPECT_EQ(rows_.FirstUnderway(), now.wall);
}

TEST_F(FinishedRowsTest, RowsAreUnderwayUntilTheirBatchIsCommitted) {
  const Now now = BothClocksAt(Millis(5000));
  rows_.Add(1, now.wall, now);
  rows_.Add(2, now.wall - Millis(10), now);
  rows_.Add(3, now.wall + Millis(10), now);
  EXPECT_EQ(rows_.FirstUnderway(), now.wall - Millis(10));
  rows_.Committed(2);
  EXPECT_EQ(rows_.FirstUnderway(), now.wall + Millis(10));
  rows_.Committed(3);
  EXPECT_EQ(rows_.FirstUnderway(), std::nullopt);
}

TEST_F(FinishedRowsTest, WithAnotherRetentionATrimThatIsScheduledComesAtOnce) {
  const Now now = BothClocksAt(Millis(5000));
  rows_.LookAgain(now);
  EXPECT_EQ(rows_.next_trim(), std::nullopt);
  rows_.Add(1, now.wall, now);
  rows_.LookAgain(now);
  EXPECT_TRUE(rows_.TakeTrim(now));
}

TEST_F(FinishedRowsTest, TheMarkNeverGoesBack) {
  rows_.Restore(WallTime(Millis(50)));
  rows_.Pass({WallTime(Millis(70)), JobId{1}});
  rows_.Pass({WallTime(Millis(60)), JobId{2}});
  EXPECT_EQ(rows_.low_water_mark(), WallTime(Millis(70)));
}

// There may be a million: the tombstones of those that are gone are not passed over again.
TEST_F(FinishedRowsTest, ATrimGoesOnWithinAMillisecond) {
  const Now now = BothClocksAt(Millis(0));
  rows_.Pass({now.wall, JobId{7}});
  EXPECT_EQ(rows_.first(), TimerPlace(now.wall, JobId{8}));
  rows_.Add(1, now.wall + Millis(1), now);
  EXPECT_EQ(rows_.first(), TimerPlace(now.wall, JobId{8}));
  rows_.Add(1, now.wall, now);
  EXPECT_EQ(rows_.first(), TimerPlace(now.wall, JobId{})) << "it may be job 5";
}

}  // namespace
}  // namespace delayd::engine
