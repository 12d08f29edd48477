#include "protocol/bulk_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayd::protocol {
namespace {

using ::testing::HasSubstr;

TEST(ChangeManyJsonTest, RequestsReadBackAsTheyWereWritten) {
  ChangeManyRequest request{
      .filter = {.queue = "orders", .state = "dead", .key_prefix = "o:", .due_before = "1h"},
      .dry_run = true,
      .limit = 7,
      .cursor = "1-2@3"};
  request.change.due = DueAfter{Millis(90'000)};
  request.change.priority = 5;
  const std::string json = ChangeManyRequestToJson(request);
  EXPECT_EQ(json,
            R"({"filter":{"queue":"orders","state":"dead","key_prefix":"o:","due_before":"1h"},)"
            R"("delay":"1m30s","priority":5,"dry_run":true,"limit":7,"cursor":"1-2@3"})");
  const auto parsed = ParseChangeManyRequest(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(ChangeManyRequestToJson(*parsed), json);
}

TEST(ChangeManyJsonTest, WrongMembersAreNamed) {
  const auto message = [](std::string_view json) {
    return ParseChangeManyRequest(json).status().message();
  };
  EXPECT_THAT(message(R"({"filter":{"quue":"a"}})"), HasSubstr("did you mean 'queue'"));
  EXPECT_THAT(message(R"({"filter":"a"})"), HasSubstr("member 'filter': is a string"));
  EXPECT_THAT(message(R"({"dryrun":true})"), HasSubstr("did you mean 'dry_run'"));
  EXPECT_THAT(message(R"({"dry_run":1})"), HasSubstr("member 'dry_run'"));
  EXPECT_THAT(message(R"({"delay":"1s","due":"2027-01-01T00:00:00Z"})"), HasSubstr("keep one"));
  EXPECT_THAT(message(R"({"limit":0})"), HasSubstr("member 'limit': is 0; use 1 to 1000"));
  EXPECT_TRUE(ParseChangeManyRequest(R"({"limit":null})").ok());
  EXPECT_THAT(message(R"({"queue":"a"})"), HasSubstr("belongs into member 'filter'"));
}

// JavaScript writes null for a time that it could not read.
TEST(ChangeManyJsonTest, ANullThatWouldChangeMoreThanWasMeantIsRefused) {
  for (const std::string name : {"queue", "state", "key_prefix", "due_before", "due_after"}) {
    const Status status = ParseChangeManyRequest("{\"filter\":{\"" + name + "\":null}}").status();
    EXPECT_THAT(status.message(), HasSubstr("member '" + name + "': is null; leave it out"));
  }
  EXPECT_FALSE(ParseChangeManyRequest(R"({"dry_run":null})").ok());
  EXPECT_FALSE(ParseChangeManyRequest(R"({"due":null,"priority":1})").ok());
}

TEST(ChangeManyJsonTest, AnswersReadBackAsTheyWereWritten) {
  const auto parsed = ParseChangedMany(ChangedManyToJson({5, 4, "c"}));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->matched, 5U);
  EXPECT_EQ(parsed->changed, 4U);
  EXPECT_EQ(parsed->next_cursor, "c");
  EXPECT_EQ(ChangedManyToJson({5, 5, ""}), R"({"matched":5,"changed":5})");
}

TEST(ForecastJsonTest, ReadsBackAsItWasWritten) {
  const std::string json =
      ForecastToJson({{WallFromMillis(0), WallFromMillis(60'000), 12, false},
                      {WallFromMillis(60'000), WallFromMillis(120'000), 3, true}});
  EXPECT_EQ(json,
            R"({"steps":[{"from":"1970-01-01T00:00:00.000Z","to":"1970-01-01T00:01:00.000Z",)"
            R"("count":12},{"from":"1970-01-01T00:01:00.000Z","to":"1970-01-01T00:02:00.000Z",)"
            R"("count":3,"approximate":true}]})");
  const auto parsed = ParseForecast(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(ForecastToJson(*parsed), json);
}

}  // namespace
}  // namespace delayd::protocol
