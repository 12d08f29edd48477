#include "daemon/late_step.h"

#include <chrono>
#include <future>

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(LateStepTest, IsToldOfOnceWhileItRuns) {
  std::promise<void> told;  // a second time it would throw
  bool done = false;
  RunAndTellWhenLate(
      std::chrono::milliseconds(1),
      [&] { told.set_value(); },
      [&] {
        told.get_future().wait();
        done = true;
      });
  EXPECT_TRUE(done);
}

TEST(LateStepTest, OneThatEndsInTimeIsNotToldOfNorWaitedFor) {
  RunAndTellWhenLate(
      std::chrono::hours(1), [] { ADD_FAILURE() << "it was not late"; }, [] {});
}

}  // namespace
}  // namespace delayd
