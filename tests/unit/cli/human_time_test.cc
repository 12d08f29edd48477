#include "cli/human_time.h"

#include <gtest/gtest.h>

namespace delayd::cli {
namespace {

TEST(HumanTimeTest, ShowsTheTwoLargestUnitsRounded) {
  const std::pair<int64_t, const char*> cases[] = {{0, "0ms"},
                                                   {350, "350ms"},
                                                   {-350, "-350ms"},
                                                   {999, "999ms"},
                                                   {1499, "1s"},
                                                   {1500, "2s"},
                                                   {59'999, "1m"},
                                                   {724'000, "12m 4s"},
                                                   {1'799'990, "30m"},
                                                   {3'600'000, "1h"},
                                                   {7'199'999, "2h"},
                                                   {86'400'000 + 60'000, "1d"},
                                                   {2 * 86'400'000 + 3 * 3'600'000, "2d 3h"},
                                                   {-5000, "-5s"}};
  for (const auto& [millis, text] : cases) {
    EXPECT_EQ(RoughDuration(Millis(millis)), text) << millis;
  }
}

TEST(HumanTimeTest, SaysBeforeAndAfter) {
  const WallTime now = WallFromMillis(1'000'000);
  EXPECT_EQ(FromNow(now, now), "now");
  EXPECT_EQ(FromNow(now + Millis(5000), now), "in 5s");
  EXPECT_EQ(FromNow(now - Millis(5000), now), "5s ago");
}

TEST(HumanTimeTest, OneIsNoMany) {
  EXPECT_EQ(Jobs(0), "0 jobs");
  EXPECT_EQ(Jobs(1), "1 job");
  EXPECT_EQ(Jobs(2), "2 jobs");
  EXPECT_EQ(WasOrWere(1), "was");
  EXPECT_EQ(WasOrWere(2), "were");
}

}  // namespace
}  // namespace delayd::cli
