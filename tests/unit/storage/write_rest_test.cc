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

}  // namespace
}  // namespace delayd::storage
