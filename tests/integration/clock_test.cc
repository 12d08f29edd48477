// A start with a clock that is far ahead of the last run's: the store is made to believe that it
// was last used two months ago by the wall clock, and a moment ago by the boot clock, as if the
// wall clock had been set meanwhile.
#include "base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "tests/support/daemon.h"

namespace delayd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Millis kTwoMonths = std::chrono::hours(24 * 60);

void SetLastRun(const std::string& data_dir, WallTime wall) {
  auto store = storage::OpenRocksJobStore({.path = data_dir});
  ASSERT_TRUE(store.ok()) << store.status().message();
  storage::Batch batch;
  batch.Put(storage::Table::kMeta,
            storage::kClockKey,
            storage::EncodeClockRecord(
                storage::kClockKey,
                {.wall = wall, .boot_id = CurrentBootId(), .boot = SystemClock().Sample().boot}));
  ASSERT_TRUE((*store)->Commit(batch).ok());
  ASSERT_TRUE((*store)->Close().ok());
}

class HeldClockTest : public ::testing::Test {
 protected:
  // A job of the wall clock that is due, and a clock that cannot be right.
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    daemon_.CtlOk({"enqueue", "--in", "1h", "far"});
    job_ = daemon_.CtlOk({"enqueue", "--in", "1s", "--queue", "wall", "x"});
    EXPECT_EQ(daemon_.Stop().exit_code, 0);
    SetLastRun(daemon_.data_dir(), SystemClock().Sample().wall - kTwoMonths);
    ASSERT_TRUE(daemon_.Start());
  }

  Daemon daemon_;
  std::string job_;
};

TEST_F(HeldClockTest, ItIsToldAndEndsAtTheKernelsOrTheOperatorsWord) {
  EXPECT_THAT(daemon_.log(), HasSubstr("clock_suspect"));
  EXPECT_THAT(daemon_.log(), HasSubstr("delayctl clock accept"));
  if (daemon_.CtlOk({"clock"}) == "held") {
    EXPECT_EQ(daemon_.CtlOk({"clock", "accept"}), "trusted");
  } else {
    EXPECT_THAT(daemon_.log(), HasSubstr("the clock is synchronised")) << "the kernel knew better";
  }
  EXPECT_EQ(daemon_.CtlOk({"clock"}), "trusted");
  EXPECT_EQ(daemon_.Stop().exit_code, 0);
  const size_t before = daemon_.log().size();
  ASSERT_TRUE(daemon_.Start());
  EXPECT_THAT(daemon_.log().substr(before), Not(HasSubstr("clock_suspect")))
      << "what was accepted stays accepted";
}

// It cancelled what was due in two months by the clock that is believed.
TEST_F(HeldClockTest, DurationsInFiltersCountFromTheTimeThatIsBelieved) {
  if (daemon_.CtlOk({"clock"}) != "held") {
    GTEST_SKIP() << "the kernel knows better";
  }
  const std::string soon = FormatUtc(SystemClock().Sample().wall - kTwoMonths + Millis(3'600'000));
  const std::string late = FormatUtc(SystemClock().Sample().wall - Millis(3'600'000));
  daemon_.CtlOk({"enqueue", "--at", soon, "--queue", "at", "x"});
  daemon_.CtlOk({"enqueue", "--at", late, "--queue", "at", "x"});
  EXPECT_EQ(daemon_.CtlOk({"cancel", "--queue", "at", "--due-before", "2h", "-y", "-q"}), "1");
}

TEST_F(HeldClockTest, RelativeJobsOfThisBootAreExactMeanwhile) {
  EXPECT_EQ(daemon_.Ctl({"lease", "--queue", "wall", "--wait", "10s"}).exit_code, 0);
}

// It is in time by the clock that is believed, and long expired by the other.
TEST(ClockTest, AReadyJobIsReasonEnoughNotToBelieveAJump) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const WallTime last_run = SystemClock().Sample().wall - kTwoMonths;
  daemon.CtlOk(
      {"enqueue", "--at", FormatUtc(last_run - Millis(1000)), "--expires-after", "1h", "x"});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  SetLastRun(daemon.data_dir(), last_run);
  ASSERT_TRUE(daemon.Start());
  if (daemon.CtlOk({"clock"}) == "held") {
    EXPECT_EQ(daemon.Ctl({"lease"}).exit_code, 0);
  } else {
    EXPECT_THAT(daemon.log(), HasSubstr("the clock is synchronised")) << "the kernel knew better";
  }
}

TEST(ClockTest, AClockBehindTheLastRunIsToldAndServed) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  SetLastRun(daemon.data_dir(), SystemClock().Sample().wall + kTwoMonths);
  ASSERT_TRUE(daemon.Start());
  EXPECT_THAT(daemon.log(), HasSubstr("behind"));
  daemon.CtlOk({"enqueue", "--in", "1s", "x"});
  EXPECT_EQ(daemon.Ctl({"lease", "--wait", "10s"}).exit_code, 0);
}

}  // namespace
}  // namespace delayd::test
