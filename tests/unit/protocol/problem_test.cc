#include "protocol/problem.h"

#include <gtest/gtest.h>

namespace delayd::protocol {
namespace {

TEST(ProblemTest, EveryCodeHasAnHttpStatusAndComesBack) {
  const std::pair<Status, int> cases[] = {{InvalidArgument("a"), 400},
                                          {InvalidArgument("a", "unknown_member"), 400},
                                          {InvalidArgument("a", "method_not_allowed"), 405},
                                          {InvalidArgument("a", "unsupported_media_type"), 415},
                                          {NotFound("a"), 404},
                                          {AlreadyExists("a", "key_conflict"), 409},
                                          {FailedPrecondition("a", "lease_lost"), 409},
                                          {FailedPrecondition("a", "leased"), 409},
                                          {ResourceExhausted("a"), 429},
                                          {ResourceExhausted("a", "payload_too_large"), 413},
                                          {ResourceExhausted("a", "disk_full"), 507},
                                          {ResourceExhausted("a", "disk_read_only"), 503},
                                          {Unavailable("a"), 503},
                                          {Unknown("a"), 503},
                                          {DataLoss("a"), 500},
                                          {PermissionDenied("a"), 403},
                                          {DeadlineExceeded("a"), 504},
                                          {Internal("a"), 500}};
  for (const auto& [status, http_status] : cases) {
    EXPECT_EQ(HttpStatusOf(status), http_status) << status.reason();
    const Status read = ParseProblem(http_status, ProblemToJson(status));
    EXPECT_EQ(read.code(), status.code()) << status.reason();
    EXPECT_EQ(read.reason(), status.reason());
    EXPECT_EQ(read.message(), "a");
  }
}

TEST(ProblemTest, WritesAllFiveMembers) {
  EXPECT_EQ(ProblemToJson(NotFound("job 42 is \"gone\"")),
            R"({"type":"about:blank","title":"Not Found","status":404,"code":"not_found",)"
            R"("detail":"job 42 is \"gone\""})");
}

TEST(ProblemTest, DetailsAreMembersAndComeBack) {
  Status status = FailedPrecondition("job 42 was acked", "finished");
  status.AddDetail("outcome", "acked");
  status.AddDetail("finished", "2027-01-15T08:00:00.000Z");
  const std::string json = ProblemToJson(status);
  EXPECT_NE(json.find(R"("outcome":"acked","finished":"2027-01-15T08:00:00.000Z"})"),
            std::string::npos)
      << json;
  EXPECT_EQ(ProblemToJson(ParseProblem(409, json)), json);  // what delayctl prints
}

// A daemon behind http:// that has moved to https://, say.
TEST(ProblemTest, ARedirectNamesWhereItLeads) {
  const std::string location = "https://jobs.example/v1/stats";
  for (const int http_status : {301, 302, 307, 308}) {
    const Status status = ParseProblem(http_status, "<html>", location);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("it redirects to '" + location + "'"), std::string::npos)
        << status.message();
  }
  EXPECT_EQ(ParseProblem(302, "<html>").message(),
            "HTTP 302, and not from delayd: a proxy, or another server on this address: '<html>'");
  EXPECT_EQ(ParseProblem(502, "", location).message(), ParseProblem(502, "").message());
}

TEST(ProblemTest, AReasonOfANewerDaemonTravelsAndItsCodeIsTheHttpStatus) {
  const Status read = ParseProblem(
      409,
      R"({"type":"about:blank","status":409,"code":"from_the_future","detail":"no","more":[1]})");
  EXPECT_EQ(read.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(read.reason(), "from_the_future");
  EXPECT_EQ(read.message(), "no");
}

// A gateway's 504 may come when the change behind it was made.
TEST(ProblemTest, WhatIsNotAsDelaydWritesItIsNotDelayds) {
  const std::string ours = ProblemToJson(DeadlineExceeded("late"));
  EXPECT_TRUE(IsDelayds(504, ours));
  EXPECT_FALSE(IsDelayds(502, ours));
  const std::pair<std::string, std::string> changes[] = {
      {"\"type\"", "\"kind\""},
      {"\"status\":504", "\"status\":\"504\""},
      {"\"status\"", "\"http_status\""},
      {"deadline_exceeded", ""},
      {"deadline_exceeded", "Gateway.Timeout"},
      {"deadline_exceeded", "\\u001b[2J"},
      {"deadline_exceeded", std::string(65, 'a')},
      {"\"detail\":\"late\"", "\"message\":\"late\""}};
  for (const auto& [from, to] : changes) {
    std::string body = ours;
    body.replace(body.find(from), from.size(), to);
    EXPECT_FALSE(IsDelayds(504, body)) << body;
    EXPECT_EQ(ParseProblem(504, body).reason(), "deadline_exceeded") << body;
  }
}

TEST(ProblemTest, ABodyThatIsNoProblemStillMakesAStatus) {
  EXPECT_EQ(ParseProblem(502, "<html>\nBad Gateway").code(), StatusCode::kUnavailable);
  EXPECT_EQ(ParseProblem(502, "<html>\nBad Gateway").message(),
            "HTTP 502, and not from delayd: a proxy, or another server on this address: "
            "'<html>\\x0aBad Gateway'");
  EXPECT_EQ(ParseProblem(413, "<html>").reason(), "body_too_large");
  EXPECT_FALSE(MayPass(ParseProblem(413, "<html>")));
  EXPECT_TRUE(MayPass(ParseProblem(500, "<html>")));
  EXPECT_FALSE(MayPass(ParseProblem(500, ProblemToJson(Internal("a bug")))));
  EXPECT_FALSE(MayPass(ParseProblem(500, ProblemToJson(DataLoss("bad row", "damaged")))));
}

// An ingress that is loaded anew answers 404, and no job is gone for that.
TEST(ProblemTest, WhatIsNotDelaydsSaysNothingOfJobs) {
  for (const int http_status : {200, 204, 302, 400, 404, 405, 409, 412, 422, 499, 500, 501, 520}) {
    EXPECT_FALSE(IsDelayds(http_status, "<html>"));
    const Status status = ParseProblem(http_status, "<html>");
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << http_status;
    EXPECT_TRUE(MayPass(status));
  }
  EXPECT_TRUE(IsDelayds(201, "{}"));
  for (const int http_status : {401, 403}) {
    EXPECT_EQ(ParseProblem(http_status, "").code(), StatusCode::kPermissionDenied);
  }
  EXPECT_EQ(ParseProblem(429, "").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ParseProblem(408, "").code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace delayd::protocol
