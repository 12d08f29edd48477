#include "base/histogram.h"

#include <gtest/gtest.h>

namespace delayd {
namespace {

constexpr std::array<uint64_t, 3> kBounds = {1, 10, 100};

TEST(HistogramTest, ABoundBelongsToTheRangeBelowIt) {
  Histogram histogram(kBounds);
  for (const uint64_t value : {0U, 1U, 2U, 10U, 11U, 100U, 101U}) {
    histogram.Observe(value);
  }
  EXPECT_EQ(histogram.count_in(0), 2U);
  EXPECT_EQ(histogram.count_in(1), 2U);
  EXPECT_EQ(histogram.count_in(2), 2U);
  EXPECT_EQ(histogram.count_in(3), 1U) << "above all bounds";
  EXPECT_EQ(histogram.count(), 7U);
  EXPECT_EQ(histogram.sum(), 225U);
}

TEST(HistogramTest, WithoutBoundsItOnlyCounts) {
  Histogram histogram;
  histogram.Observe(5);
  EXPECT_EQ(histogram.count(), 1U);
  EXPECT_TRUE(histogram.bounds().empty());
}

}  // namespace
}  // namespace delayd
