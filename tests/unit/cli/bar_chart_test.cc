#include "cli/bar_chart.h"

#include <gtest/gtest.h>

#include "cli/table.h"

namespace delayd::cli {
namespace {

TEST(BarChartTest, TheLongestBarFillsTheWidthAndNoLineIsWider) {
  const std::string chart =
      DrawBars({{"09:00", 100, "100"}, {"10:00", 50, "50"}, {"11:00", 0, "0"}}, 40, false);
  EXPECT_EQ(chart,
            "09:00  100  ###########################\n"
            "10:00   50  #############\n"
            "11:00    0\n");
}

TEST(BarChartTest, Utf8BarsAreExactToAnEighth) {
  EXPECT_EQ(DrawBars({{"a", 16, "16"}, {"b", 9, "9"}, {"c", 1, "1"}}, 10, true),
            "a  16  ██\n"
            "b   9  █▏\n"
            "c   1  ▏\n");
}

TEST(BarChartTest, SomethingIsNeverDrawnAsNothing) {
  EXPECT_EQ(DrawBars({{"a", 1'000'000, "1000000"}, {"b", 1, "1"}}, 30, false),
            "a  1000000  #################\n"
            "b        1  #\n");
}

TEST(SparklineTest, OnlyNothingIsDrawnAsNothing) {
  EXPECT_EQ(DrawSparkline({0, 1, 1000}, true), ".▁█");
  EXPECT_EQ(DrawSparkline({0, 1, 1000}, false), "._#");
  EXPECT_EQ(DrawSparkline({0, 0}, true), "..");
}

TEST(BarChartTest, ATerminalTooNarrowGetsOneColumn) {
  EXPECT_EQ(DrawBars({{"label", 5, "5"}}, 3, false), "label  5  #\n");
}

}  // namespace
}  // namespace delayd::cli
