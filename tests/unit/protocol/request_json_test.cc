#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/ack_json.h"
#include "protocol/cancel_json.h"
#include "protocol/job_json.h"

namespace delayd::protocol {
namespace {

using ::testing::HasSubstr;

TEST(RescheduleRequestTest, ReadsBack) {
  RescheduleRequest request;
  request.due = DueAfter{Millis(1500)};
  request.priority = 3;
  auto read = ParseRescheduleRequest(RescheduleRequestToJson(request));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(std::get<DueAfter>(*read->due).delay, Millis(1500));
  EXPECT_EQ(read->priority, 3U);

  request.due = DueAt{WallFromMillis(7)};
  read = ParseRescheduleRequest(RescheduleRequestToJson(request));
  EXPECT_EQ(std::get<DueAt>(*read->due).at, WallFromMillis(7));
}

TEST(RescheduleRequestTest, ChangingNothingOrTwiceIsRefused) {
  EXPECT_THAT(ParseRescheduleRequest("{}").status().message(), HasSubstr("nothing to change"));
  EXPECT_THAT(
      ParseRescheduleRequest(R"({"delay":"1s","due":"2027-01-01T09:00:00Z"})").status().message(),
      HasSubstr("both are given"));
  EXPECT_THAT(ParseRescheduleRequest(R"({"prioriti":1})").status().message(),
              HasSubstr("did you mean 'priority'"));
}

TEST(RescheduleRequestTest, AZeroDelayIsAChange) {
  EXPECT_TRUE(ParseRescheduleRequest(R"({"delay":"0"})")->due.has_value());
}

TEST(RequestJsonTest, ASwitchMayBeNullAndIsNamedWhenItIsWrong) {
  EXPECT_FALSE(ParseRescheduleRequest(R"({"touch":null,"delay":"1s"})")->touch);
  EXPECT_FALSE(ParsePauseRequest(R"({"create":null})")->create);
  EXPECT_TRUE(ParseLeaseChange(R"({"counts_as_attempt":null})")->counts_as_attempt);
  EXPECT_THAT(ParseRescheduleRequest(R"({"touch":1})").status().message(),
              HasSubstr("member 'touch': is a number; write true or false"));
  EXPECT_THAT(ParsePauseRequest(R"({"create":"x"})").status().message(),
              HasSubstr("member 'create': is a string"));
  EXPECT_THAT(ParseLeaseChange(R"({"counts_as_attempt":0})").status().message(),
              HasSubstr("member 'counts_as_attempt': is a number"));
}

TEST(LeaseRequestTest, ReadsBackAndHasDefaults) {
  LeaseRequest request;
  request.count = 10;
  request.wait = Millis(20'000);
  request.lease = Millis(60'000);
  const auto read = ParseLeaseRequest(LeaseRequestToJson(request));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->count, 10U);
  EXPECT_EQ(read->wait, Millis(20'000));
  EXPECT_EQ(read->lease, Millis(60'000));
  for (const char* body : {"", " \r\n", "{}"}) {
    EXPECT_EQ(ParseLeaseRequest(body)->count, 1U);
    EXPECT_FALSE(ParseLeaseRequest(body)->lease.has_value());
  }
  EXPECT_FALSE(ParseLeaseRequest(R"({"wait":20})").ok());
}

TEST(LeaseRequestTest, TakesOnlyWhatItIsToldTo) {
  constexpr std::array<std::string_view, 2> kTakes = {"lease", "client"};
  EXPECT_EQ(ParseLeaseRequest(R"({"lease":"1s","client":"c"})", kTakes)->client, "c");
  for (const char* body : {R"({"count":1})", R"({"wait":"0s"})"}) {
    EXPECT_EQ(ParseLeaseRequest(body, kTakes).status().reason(), "unknown_member");
  }
}

TEST(LeaseChangeTest, ReadsBackAndMayBeEmpty) {
  LeaseChange change;
  change.delay = Millis(5000);
  change.lease = Millis(1);
  change.error = "exit 1: \xc3\xa4";
  const auto read = ParseLeaseChange(LeaseChangeToJson(change));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->delay, change.delay);
  EXPECT_EQ(read->lease, change.lease);
  EXPECT_EQ(read->error, change.error);
  EXPECT_TRUE(ParseLeaseChange("")->error.empty());
  EXPECT_THAT(ParseLeaseChange(R"({"eror":"x"})").status().message(),
              HasSubstr("did you mean 'error'"));
}

TEST(LeaseChangeTest, TakesOnlyWhatItIsToldTo) {
  constexpr std::array<std::string_view, 1> kTakes = {"lease"};
  EXPECT_EQ(ParseLeaseChange(R"({"lease":"1s"})", kTakes)->lease, Millis(1000));
  EXPECT_EQ(ParseLeaseChange(R"({"lease":"1s","error":""})", kTakes).status().reason(),
            "unknown_member");
}

TEST(AckJsonTest, RequestsAreReadAndAnswersWritten) {
  const std::vector<LeaseToken> tokens = {{JobId{4711}, 3, 31}, {JobId{1}, 1, 1}};
  const auto request = ParseAckRequest(R"({"tokens":["4711-3-1f","1-1-1"]})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(*request, tokens);
  EXPECT_EQ(AckedLeasesToJson({.acked = 3, .lost = tokens}),
            R"({"acked":3,"lost":["4711-3-1f","1-1-1"]})");
  EXPECT_EQ(AckedLeasesToJson({.acked = 1}), R"({"acked":1,"lost":[]})");
}

TEST(CancelJsonTest, RequestsAreReadAndAnswersWritten) {
  const std::vector<JobId> ids = {JobId{4711}, JobId{1}};
  const auto request = ParseCancelRequest(R"({"ids":[4711,1]})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(*request, ids);
  Status finished = FailedPrecondition("job 7 is finished", "finished");
  finished.AddDetail("outcome", "acked");
  EXPECT_EQ(CancelledJobsToJson(
                {.cancelled = 3, .refused = {{JobId{7}, finished}, {JobId{8}, NotFound("gone")}}}),
            R"({"cancelled":3,"refused":[{"id":7,"code":"finished","outcome":"acked"},)"
            R"({"id":8,"code":"not_found"}]})");
  EXPECT_EQ(CancelledJobsToJson({.cancelled = 1}), R"({"cancelled":1,"refused":[]})");
}

TEST(CancelJsonTest, WhatIsNoListOfIdsIsNamed) {
  EXPECT_EQ(ParseCancelRequest(R"({"id":[]})").status().message(),
            "member 'id': is unknown; did you mean 'ids'?");
  for (const char* json : {R"({"ids":1})",
                           R"({"ids":["1"]})",
                           R"({"ids":[-1]})",
                           R"({"ids":[1.5]})",
                           R"({"ids":[9007199254740992]})",
                           ""}) {
    EXPECT_FALSE(ParseCancelRequest(json).ok()) << json;
  }
}

TEST(AckJsonTest, WhatIsNoListOfTokensIsNamed) {
  EXPECT_EQ(ParseAckRequest(R"({"token":[]})").status().message(),
            "member 'token': is unknown; did you mean 'tokens'?");
  EXPECT_FALSE(ParseAckRequest(R"({"tokens":"1-1-1"})").ok());
  EXPECT_FALSE(ParseAckRequest(R"({"tokens":[1]})").ok());
  EXPECT_FALSE(ParseAckRequest(R"({"tokens":["1-1"]})").ok());
  EXPECT_FALSE(ParseAckRequest("").ok());
}

}  // namespace
}  // namespace delayd::protocol
