#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/daemon/router_fixture.h"

namespace delayd::http {
namespace {

using ::testing::HasSubstr;

class BulkRoutesTest : public RouterTest {};

TEST_F(BulkRoutesTest, FiltersAreReadIntoTheCommand) {
  const auto cancel = CommandOf<engine::ChangeMany>(
      "POST",
      "/v1/jobs:cancel",
      R"({"filter":{"queue":"a","state":"dead","key_prefix":"k","due_before":"1h"},)"
      R"("dry_run":true,"limit":5,"cursor":"1-2"})");
  EXPECT_EQ(cancel.action, engine::ChangeMany::Action::kCancel);
  EXPECT_EQ(cancel.filter.queue, "a");
  EXPECT_EQ(cancel.filter.state, JobState::kDead);
  EXPECT_EQ(cancel.filter.key_prefix, "k");
  EXPECT_EQ(cancel.filter.due_before, kNow.wall + Millis(3'600'000));
  EXPECT_TRUE(cancel.dry_run);
  EXPECT_EQ(cancel.limit, 5U);
  EXPECT_EQ(cancel.cursor, "1-2");
  const auto move = CommandOf<engine::ChangeMany>(
      "POST", "/v1/jobs:reschedule", R"({"filter":{"queue":"a"},"delay":"1m","priority":2})");
  EXPECT_EQ(std::get<DueAfter>(*move.due).delay, Millis(60'000));
  EXPECT_EQ(move.priority, 2U);
}

TEST_F(BulkRoutesTest, DeadJobsAreKickedUnlessOthersAreNamed) {
  const auto kicked = [this](const std::string& filter) {
    return CommandOf<engine::ChangeMany>("POST", "/v1/jobs:kick", R"({"filter":)" + filter + "}")
        .filter.state;
  };
  EXPECT_EQ(kicked(R"({"queue":"a"})"), JobState::kDead);
  EXPECT_EQ(kicked(R"({"state":"scheduled"})"), JobState::kScheduled);
}

TEST_F(BulkRoutesTest, WrongMembersAreNamed) {
  EXPECT_THAT(RefusalOf("POST", "/v1/jobs:cancel", R"({"filter":{"state":"gone"}})").body,
              HasSubstr("member 'state'"));
  EXPECT_THAT(RefusalOf("POST", "/v1/jobs:cancel", R"({"filter":{"due_after":"soon"}})").body,
              HasSubstr("member 'due_after'"));
  EXPECT_THAT(RefusalOf("POST", "/v1/jobs:cancel", R"({"filter":{"queue":"a"},"delay":"1m"})").body,
              HasSubstr("'delay': is unknown; the members are filter, dry_run, limit, cursor"));
}

TEST_F(BulkRoutesTest, AForecastHasDefaults) {
  const auto forecast = CommandOf<engine::Forecast>("GET", "/v1/forecast");
  EXPECT_EQ(forecast.from, kNow.wall);
  EXPECT_EQ(forecast.to, kNow.wall + Millis(3'600'000));
  EXPECT_EQ(forecast.step, Millis(60'000));
  EXPECT_FALSE(forecast.queue.has_value());
  const auto other =
      CommandOf<engine::Forecast>("GET", "/v1/forecast?queue=a&from=1h&to=2h&step=10m");
  EXPECT_EQ(other.from, kNow.wall + Millis(3'600'000));
  EXPECT_EQ(other.step, Millis(600'000));
  EXPECT_THAT(RefusalOf("GET", "/v1/forecast?step=soon").body, HasSubstr("query parameter 'step'"));
  EXPECT_THAT(RefusalOf("GET", "/v1/forecast?form=1h").body, HasSubstr("did you mean 'from'"));
}

}  // namespace
}  // namespace delayd::http
