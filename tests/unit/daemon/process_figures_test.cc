#include "daemon/process_figures.h"

#include <fcntl.h>

#include <ctime>
#include <filesystem>
#include <iterator>

#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace delayd {
namespace {

TEST(ProcessFiguresTest, TheyAreWhatTheKernelSaysElsewhere) {
  const ProcessFigures before = ReadProcessFigures();
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  while (std::clock() < CLOCKS_PER_SEC / 5) {  // some of it, so that it can be told from none
  }
  const double used = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  const ProcessFigures figures = ReadProcessFigures();
  EXPECT_EQ(figures.open_files, before.open_files + 1);
  EXPECT_NEAR(figures.cpu_seconds, used, 0.1);
  const std::filesystem::directory_iterator threads("/proc/self/task");
  EXPECT_EQ(figures.threads, static_cast<uint64_t>(std::distance(begin(threads), end(threads))));
  EXPECT_GT(figures.resident_bytes, 0U);
  EXPECT_GT(figures.virtual_bytes, figures.resident_bytes);
}

}  // namespace
}  // namespace delayd
