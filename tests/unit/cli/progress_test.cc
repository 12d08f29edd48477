#include "cli/progress.h"

#include <sstream>

#include <gtest/gtest.h>

namespace delayd::cli {
namespace {

TEST(ProgressTest, ATerminalGetsABarThatIsTakenAway) {
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err, {.err_is_terminal = true});
  SimulatedClock clock({.wall = WallFromMillis(0), .boot = BootFromMillis(0)});
  {
    Progress progress(&console, &clock, "jobs", 1000);
    progress.Update(1, 10);
    EXPECT_EQ(err.str(), "");
    clock.Advance(Millis(1000));
    progress.Update(50, 500);
  }
  EXPECT_EQ(err.str(), "\r\x1b[K[###############---------------] 50% 50 jobs 50/s\r\x1b[K");
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressTest, ElsewhereThereIsALineEveryTenSeconds) {
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err, {});
  SimulatedClock clock({.wall = WallFromMillis(0), .boot = BootFromMillis(0)});
  Progress progress(&console, &clock, "jobs", 0);
  for (uint64_t second = 1; second <= 25; ++second) {
    clock.Advance(Millis(1000));
    progress.Update(second * 100, second);
  }
  EXPECT_EQ(err.str(), "1000 jobs 100/s after 10s\n2000 jobs 100/s after 20s\n");
}

TEST(ProgressTest, SoItIsOnATerminalThatObeysNoSequences) {
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err, {.err_is_terminal = true, .dumb = true});
  SimulatedClock clock({.wall = WallFromMillis(0), .boot = BootFromMillis(0)});
  Progress progress(&console, &clock, "jobs", 0);
  clock.Advance(Millis(10'000));
  progress.Update(1000, 1);
  EXPECT_EQ(err.str(), "1000 jobs 100/s after 10s\n");
}

TEST(ProgressTest, TheBarNeverWraps) {
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err, {.err_is_terminal = true, .width = 20});
  SimulatedClock clock({.wall = WallFromMillis(0), .boot = BootFromMillis(0)});
  Progress progress(&console, &clock, "jobs", 10);
  clock.Advance(Millis(1000));
  progress.Update(1, 20);
  EXPECT_EQ(err.str(), "\r\x1b[K[##################");
}

}  // namespace
}  // namespace delayd::cli
