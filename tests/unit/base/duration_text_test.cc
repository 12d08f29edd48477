#include "base/duration_text.h"

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(DurationTextTest, ARangeIsSaidAsItIsTyped) {
  const Status status =
      OutOfRange("lease", Millis(0), Millis(1), Millis(604'800'000), "invalid_lease");
  EXPECT_EQ(status.message(), "lease of 0s is out of range; use 1ms to 7d");
  EXPECT_EQ(status.reason(), "invalid_lease");
  EXPECT_EQ(OutOfRange("wait", Millis(7'200'000), Millis(0), Millis(3'600'000), "x").message(),
            "wait of 2h is out of range; use 0s to 1h");
}

}  // namespace
}  // namespace delayd
