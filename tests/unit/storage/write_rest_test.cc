#include "storage/write_rest.h"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

namespace delayd::storage {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class WriteRestTest : public ::testing::Test {
 protected:
  // Merges have caught up after so many steps.
  microseconds RestOf(int tries, uint64_t bytes, uint64_t rate, int steps_until_merged) {
    microseconds rested{};
    RestBeforeTry(
        tries,
        bytes,
        [this, rate, steps_until_merged] { return steps_ < steps_until_merged ? rate : 0; },
        [this, &rested](microseconds step) {
          ++steps_;
          rested += step;
        });
    return rested;
  }

  static constexpr int kNever = 1'000'000;

  int steps_ = 0;
};

TEST_F(WriteRestTest, WhereWritesAreSlowItIsTwiceAsLongAsRocksDbWouldWait) {
  EXPECT_EQ(RestOf(1, 16 * kMiB, 16 * kMiB, kNever), milliseconds(2001));
  EXPECT_EQ(RestOf(3, kMiB, 16 * kMiB, kNever), milliseconds(3 + 3 * 125));
  EXPECT_EQ(RestOf(1, 0, 16 * kMiB, kNever), milliseconds(1));
}

TEST_F(WriteRestTest, ThatOfALargeBatchEndsWhenMergesHaveCaughtUp) {
  EXPECT_EQ(RestOf(1, 64 * kMiB, 16 * kMiB, /*steps_until_merged=*/3), milliseconds(15));
  EXPECT_EQ(steps_, 3);
}

TEST_F(WriteRestTest, WhereWritesAreStoppedItIsShort) {
  EXPECT_EQ(RestOf(7, 64 * kMiB, /*rate=*/0, kNever), milliseconds(5));
}

class WriteAllowanceTest : public ::testing::Test {
 protected:
  // The rest before the first try of a write, which then takes `tries`.
  microseconds Write(uint64_t bytes, int tries = 1) {
    const WriteAllowance::Time before = now_;
    allowance_.RestBeforeFirstTry(
        now_, [this] { return rate_; }, [this](microseconds step) { now_ += step; });
    const auto rested = std::chrono::duration_cast<microseconds>(now_ - before);
    allowance_.Wrote(tries, now_, bytes);
    return rested;
  }

  WriteAllowance allowance_;
  WriteAllowance::Time now_;
  uint64_t rate_ = 16 * kMiB;
};

TEST_F(WriteAllowanceTest, AsLongAsNoTryFailedThereIsNoRest) {
  EXPECT_EQ(Write(16 * kMiB), microseconds(0));
  EXPECT_EQ(Write(16 * kMiB), microseconds(0));
}

TEST_F(WriteAllowanceTest, LargeWritesFollowEachOtherAtTheRateThatRocksDbAllows) {
  Write(16 * kMiB, /*tries=*/2);
  const WriteAllowance::Time begin = now_;
  for (int i = 0; i < 10; ++i) {
    Write(16 * kMiB);
  }
  EXPECT_EQ(now_ - begin, milliseconds(10'001) + microseconds(10));
}

TEST_F(WriteAllowanceTest, WhatIsChargedIsTheSizeOfTheLastWrite) {
  Write(16 * kMiB, /*tries=*/2);
  EXPECT_EQ(Write(8 * kMiB), milliseconds(1001) + microseconds(1));
  EXPECT_EQ(Write(0), milliseconds(500) + microseconds(1));
  EXPECT_EQ(Write(16 * kMiB), microseconds(0));
}

TEST_F(WriteAllowanceTest, WhatWasNotUsedIsLeftForLater) {
  Write(16 * kMiB, /*tries=*/2);
  now_ += milliseconds(2500);
  EXPECT_EQ(Write(16 * kMiB), microseconds(0));
  EXPECT_EQ(Write(16 * kMiB), microseconds(0));
  EXPECT_EQ(Write(16 * kMiB), milliseconds(501) + microseconds(3));
}

TEST_F(WriteAllowanceTest, SmallWritesAreTriedAtOnce) {
  Write(1000, /*tries=*/2);
  EXPECT_EQ(Write(1000), microseconds(0));
  EXPECT_EQ(Write(16 * kMiB), microseconds(0));
  EXPECT_GT(Write(1000), milliseconds(1000)) << "but they are charged, too";
}

TEST_F(WriteAllowanceTest, TheRestEndsWhenWritesAreSlowNoMore) {
  Write(16 * kMiB, /*tries=*/2);
  rate_ = 0;
  EXPECT_EQ(Write(16 * kMiB), microseconds(0));
  rate_ = 16 * kMiB;
  EXPECT_EQ(Write(16 * kMiB), microseconds(0)) << "RocksDB begins anew, too";
}

TEST_F(WriteAllowanceTest, TheRestIsLongerWhenTheRateFallsMeanwhile) {
  Write(16 * kMiB, /*tries=*/2);
  microseconds rested{};
  allowance_.RestBeforeFirstTry(
      now_,
      [this, &rested] { return rested < milliseconds(500) ? rate_ : rate_ / 2; },
      [&rested](microseconds step) { rested += step; });
  EXPECT_EQ(rested, milliseconds(2001) + microseconds(1));
}

}  // namespace
}  // namespace delayd::storage
