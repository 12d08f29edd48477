// What delayctl lease says of a queue that gives it no job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using ::testing::HasSubstr;

TEST(LeaseVerbTest, WhatHoldsTheQueueBackIsSaid) {
  const auto said = [](const Answer& queue) {
    const Outcome outcome =
        Ctl({"lease", "--queue", "q;r"}, {.daemon = [&](const Request& request) {
              return request.method == "GET" ? queue : Ok(R"({"jobs":[]})");
            }});
    EXPECT_EQ(outcome.code, 6);
    EXPECT_EQ(outcome.requests.size(), 2U);
    return outcome.err;
  };
  EXPECT_THAT(
      said(Ok(R"({"name":"q","ready":3,"paused":true})")),
      HasSubstr("queue q;r is paused, with 3 jobs ready; resume it with: delayctl resume 'q;r'"));
  EXPECT_THAT(said(Ok(R"({"name":"q","ready":3,"damaged":1,"paused":true})")),
              HasSubstr("queue q;r is paused, with 2 jobs ready; resume it"));
  EXPECT_THAT(said(Ok(R"({"name":"q","ready":2,"damaged":2,"paused":true})")),
              HasSubstr("damaged records keep 2 jobs"))
      << "a resume would not help";
  EXPECT_THAT(said(Ok(R"({"name":"q","ready":1,"leased":2,"paused":false,"concurrency":2})")),
              HasSubstr("has 1 job ready, and as many leased as its cap allows (2)"));
  EXPECT_THAT(said(Ok(R"({"name":"q","ready":1,"paused":false,"rate":"1/m"})")),
              HasSubstr("has 1 job ready, and its rate is 1/m"));
  EXPECT_THAT(said(Ok(R"({"name":"q","ready":2,"damaged":2,"paused":false,"rate":"1/m"})")),
              HasSubstr("damaged records keep 2 jobs of queue q;r from being handed out; run "
                        "'delayctl verify'"));
  EXPECT_THAT(said(Ok(R"({"name":"q","ready":3,"damaged":2,"paused":false,"rate":"1/m"})")),
              HasSubstr("has 1 job ready, and its rate is 1/m"));
  EXPECT_THAT(
      said(Ok(R"({"name":"q","ready":3,"damaged":1,"leased":2,"paused":false,"concurrency":2})")),
      HasSubstr("has 2 jobs ready, and as many leased"));
  EXPECT_THAT(said(Ok(R"({"name":"q","ready":0,"paused":false,"rate":"1/m"})")),
              HasSubstr("no job in queue q;r was ready within 0s; wait longer"));
  EXPECT_THAT(said(Problem(NotFound("queue q is not known"))), HasSubstr("it never had any"));
}

}  // namespace
}  // namespace delayd::cli
