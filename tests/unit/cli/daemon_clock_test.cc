// What is left until a job is due, where the daemon's clock shows another time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/job_json.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using ::testing::HasSubstr;

// It was "due in 2h" and "3h ago", by whichever clock delayctl had.
TEST(DaemonClockTest, WhatIsLeftIsByTheDaemonsClock) {
  const auto left = [](Millis ahead) {
    const auto daemon = [](const Request&) {
      return Ok(protocol::JobPageToJson({.jobs = {SomeJob()}, .next_cursor = ""}));
    };
    return Ctl({"list"}, {.daemon = daemon, .daemon_ahead = ahead}).out;
  };
  EXPECT_THAT(left(Millis(0)), HasSubstr("  30m  "));
  EXPECT_THAT(left(Millis(1900)), HasSubstr("  30m  "));
  EXPECT_THAT(left(std::chrono::hours(1)), HasSubstr("  -30m "));
  EXPECT_THAT(left(-std::chrono::hours(1)), HasSubstr("  1h 30m  "));
}

}  // namespace
}  // namespace delayd::cli
