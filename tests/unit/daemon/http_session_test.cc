#include "daemon/http/http_session.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plain_report.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/now.h"

#include <sys/stat.h>

namespace delayd::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Get(const std::string& target, const std::string& fields = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: d\r\n" + fields + "\r\n";
}

class HttpSessionTest : public ::testing::Test {
 protected:
  // Feeds bytes and takes the requests that come of them.
  void Feed(std::string_view bytes) {
    session_.Receive(bytes);
    TakeRequests();
  }

  void TakeRequests() {
    while (std::optional<SessionRequest> request = session_.Next(kNow)) {
      requests_.push_back(*std::move(request));
    }
  }

  void Answer(size_t index) {
    engine::Reply reply;
    reply.body =
        JobView{.id = std::get<JobId>(std::get<engine::Show>(requests_.at(index).command).job)};
    session_.Answer(requests_[index].tag, reply);
  }

  std::string TakeOutput() {
    std::string output(session_.output());
    session_.Sent(output.size());
    return output;
  }

  const ReaderOptions options_{};
  const Router router_{RouterOptions{.service = &test::kPlainReport}};
  HttpSession session_{options_, router_};
  std::vector<SessionRequest> requests_;
};

TEST(HttpDateTest, IsTheSecondAsRfc9110WritesIt) {
  HttpDate date;
  EXPECT_EQ(date.text(), "");
  for (const auto& [millis, text] : std::initializer_list<std::pair<int64_t, const char*>>{
           {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
           {784'111'777'000, "Sun, 06 Nov 1994 08:49:37 GMT"},
           {784'111'777'999, "Sun, 06 Nov 1994 08:49:37 GMT"},
           {951'868'799'999, "Tue, 29 Feb 2000 23:59:59 GMT"},
           {784'111'778'000, "Sun, 06 Nov 1994 08:49:38 GMT"}}) {
    date.Set(WallFromMillis(millis));
    EXPECT_EQ(date.text(), text);
  }
}

TEST(HttpDateTest, StandsInEveryAnswerOfARouterThatHasIt) {
  HttpDate date;
  const Router router{RouterOptions{.service = &test::kPlainReport, .date = &date}};
  const ReaderOptions options;
  HttpSession session(options, router);
  const auto answer_to = [&session](const std::string& request) {
    session.Receive(request);
    EXPECT_FALSE(session.Next(kNow));
    std::string output(session.output());
    session.Sent(output.size());
    return output;
  };
  date.Set(WallFromMillis(784'111'777'000));
  EXPECT_THAT(answer_to(Get("/nowhere")), HasSubstr("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  date.Set(WallFromMillis(784'111'778'000));
  EXPECT_THAT(answer_to("bad\r\n\r\n"), HasSubstr("\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n"));
}

TEST_F(HttpSessionTest, AnswersGoOutInTheOrderOfTheRequests) {
  Feed(Get("/v1/jobs/1") + Get("/v1/jobs/2") + Get("/nowhere") + Get("/v1/jobs/3"));
  ASSERT_EQ(requests_.size(), 3U);
  Answer(2);
  Answer(1);
  EXPECT_EQ(TakeOutput(), "");
  EXPECT_EQ(session_.phase(), Session::Phase::kWorking);
  Answer(0);
  const std::string output = TakeOutput();
  const size_t first = output.find("\"id\":1");
  const size_t second = output.find("\"id\":2");
  const size_t missing = output.find(" 404 ");
  const size_t third = output.find("\"id\":3");
  EXPECT_LT(first, second);
  EXPECT_LT(second, missing);
  EXPECT_LT(missing, third);
  EXPECT_NE(third, std::string::npos);
  EXPECT_EQ(session_.phase(), Session::Phase::kIdle);
  EXPECT_FALSE(session_.finished());
}

TEST_F(HttpSessionTest, AChangeThatWaitsForRoomIsNotTakenForASlowOne) {
  session_.Receive(Get("/v1/jobs/1") +
                   "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
                   "Content-Length: 13\r\n\r\n{\"queue\":\"q\"}" +
                   Get("/v1/jobs/2"));
  requests_ = {session_.NextRead(kNow).value()};
  EXPECT_FALSE(session_.NextRead(kNow));
  EXPECT_TRUE(session_.waits_for_room());
  Answer(0);
  TakeOutput();
  EXPECT_EQ(session_.phase(), Session::Phase::kWorking);
  TakeRequests();
  ASSERT_EQ(requests_.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<engine::Enqueue>(requests_[1].command));
  EXPECT_FALSE(session_.waits_for_room());
}

// Nobody reads it meanwhile.
TEST_F(HttpSessionTest, ABodyThatWaitsForRoomIsNotTakenForASlowOne) {
  session_.Receive(
      "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
      "Content-Length: 13\r\n\r\n{\"queue\":");
  EXPECT_FALSE(session_.NextRead(kNow));
  EXPECT_TRUE(session_.waits_for_room());
  EXPECT_EQ(session_.phase(), Session::Phase::kWorking);
  EXPECT_FALSE(session_.Next(kNow));
  EXPECT_EQ(session_.phase(), Session::Phase::kBody) << "there is room, and the client's turn";
  session_.Receive("\"q\"}");
  TakeRequests();
  EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(HttpSessionTest, HeadTellsTheLengthAndSendsNoBody) {
  Feed("HEAD /v1/jobs/7 HTTP/1.1\r\nHost: d\r\n\r\n");
  Answer(0);
  const std::string output = TakeOutput();
  EXPECT_THAT(output, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(output, EndsWith("\r\n\r\n"));
  EXPECT_THAT(output, Not(HasSubstr("Content-Length: 0\r\n")));
}

TEST_F(HttpSessionTest, NoRefusalOfWhatBeginsAsHeadHasABody) {
  for (const std::string& head : {std::string("HEAD /v1/\x7f HTTP/1.1\r\nHost: d\r\n\r\n"),
                                  "HEAD /" + std::string(options_.line_bytes_max, 'x'),
                                  std::string("HEAD / HTTP/1.1\r\nHo st: d\r\n\r\n")}) {
    HttpSession session(options_, router_);
    session.Receive(head);
    EXPECT_FALSE(session.Next(kNow));
    EXPECT_THAT(std::string(session.output()),
                AllOf(StartsWith("HTTP/1.1 4"), EndsWith("\r\n\r\n")));
  }
  HttpSession session(options_, router_);
  session.Receive("GET / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(session.Next(kNow));
  EXPECT_THAT(std::string(session.output()), HasSubstr("exactly one Host"));
}

TEST_F(HttpSessionTest, ARefusalOfHeadHasNoBodyEither) {
  Feed("HEAD /v1/jobs/7 HTTP/1.1\r\n\r\n");
  const std::string output = TakeOutput();
  EXPECT_THAT(output, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(output, EndsWith("\r\n\r\n"));
}

TEST_F(HttpSessionTest, CloseEndsBehindItsAnswer) {
  Feed(Get("/v1/jobs/1", "Connection: close\r\n") + Get("/v1/jobs/2"));
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_FALSE(session_.finished());
  Answer(0);
  EXPECT_THAT(TakeOutput(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(session_.finished());
}

TEST_F(HttpSessionTest, OldClientsAreClosedUnlessTheyAskOtherwise) {
  Feed("GET /v1/jobs/1 HTTP/1.0\r\n\r\n");
  Answer(0);
  EXPECT_TRUE(session_.finished());
}

TEST_F(HttpSessionTest, OldClientsThatAskAreToldThatTheConnectionStaysOpen) {
  Feed("GET /v1/jobs/1 HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
  Answer(0);
  EXPECT_THAT(TakeOutput(), HasSubstr("Connection: keep-alive\r\n"));
  EXPECT_FALSE(session_.finished());
  Feed(Get("/v1/jobs/1"));
  Answer(1);
  EXPECT_THAT(TakeOutput(), Not(HasSubstr("Connection:")));
}

TEST_F(HttpSessionTest, RefusedRequestIsAnsweredBehindTheOnesBeforeIt) {
  Feed(Get("/v1/jobs/1") + "NONSENSE\r\n\r\n" + Get("/v1/jobs/2"));
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(TakeOutput(), "");
  Answer(0);
  const std::string output = TakeOutput();
  EXPECT_THAT(output, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(output, HasSubstr("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(session_.finished());
}

TEST_F(HttpSessionTest, ContinueWaitsForTheAnswersBeforeIt) {
  Feed(Get("/v1/jobs/1") +
       "PATCH /v1/jobs/2 HTTP/1.1\r\nHost: d\r\nExpect: 100-continue\r\n"
       "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n");
  EXPECT_EQ(TakeOutput(), "");
  Answer(0);
  EXPECT_THAT(TakeOutput(), EndsWith("HTTP/1.1 100 Continue\r\n\r\n"));
  Feed(R"({"priority":1})");
  EXPECT_EQ(requests_.size(), 2U);
}

TEST_F(HttpSessionTest, NoContinueComesBehindTheRefusalOfABodyThatCameUnasked) {
  Feed(Get("/v1/jobs/1") +
       "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nExpect: 100-continue\r\n"
       "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  Feed("ZZ\r\n");
  Answer(0);
  EXPECT_THAT(TakeOutput(), AllOf(HasSubstr("400 Bad Request"), Not(HasSubstr("100 Continue"))));
}

TEST_F(HttpSessionTest, FewRequestsWithLargeAnswersAreUnderWayAtATime) {
  std::string many;
  for (int i = 0; i < 10; ++i) {
    many += Get("/v1/jobs/1");
  }
  Feed(many);
  EXPECT_EQ(requests_.size(), HttpSession::kLargeAnswersMax);
  EXPECT_FALSE(session_.wants_input());
  Answer(0);
  EXPECT_TRUE(session_.wants_input());
  TakeRequests();
  EXPECT_EQ(requests_.size(), HttpSession::kLargeAnswersMax + 1);
}

TEST_F(HttpSessionTest, TooManyUnansweredRequestsHoldBackTheRest) {
  std::string bytes;
  for (size_t i = 0; i < HttpSession::kRequestsMax + 5; ++i) {
    bytes += "DELETE /v1/jobs/1 HTTP/1.1\r\nHost: d\r\n\r\n";
  }
  Feed(bytes);
  EXPECT_EQ(requests_.size(), HttpSession::kRequestsMax);
  EXPECT_FALSE(session_.wants_input());
  engine::Reply reply;
  reply.body = JobView{.id = JobId{1}};
  session_.Answer(requests_[0].tag, reply);
  EXPECT_TRUE(session_.wants_input());
  TakeRequests();
  EXPECT_EQ(requests_.size(), HttpSession::kRequestsMax + 1);
}

TEST_F(HttpSessionTest, ClientThatDoesNotReadIsNotReadFrom) {
  Feed(Get("/v1/jobs/1"));
  engine::Reply reply;
  reply.body =
      JobView{.payload = std::string(HttpSession::kOutputBytesMax, 'x'), .payload_bytes = 1};
  session_.Answer(requests_[0].tag, reply);
  EXPECT_FALSE(session_.wants_input());
  Feed(Get("/v1/jobs/2"));
  EXPECT_EQ(requests_.size(), 1U);
  TakeOutput();
  EXPECT_TRUE(session_.wants_input());
  TakeRequests();
  EXPECT_EQ(requests_.size(), 2U);
}

TEST_F(HttpSessionTest, P10InputThatCannotBeTakenYetStaysInTheSocket) {
  size_t fed = 0;
  for (int i = 1; session_.wants_input() && fed < size_t{10} << 20; ++i) {
    const std::string more = Get("/v1/jobs/" + std::to_string(i));
    session_.Receive(more);
    fed += more.size();
    if (requests_.size() < HttpSession::kLargeAnswersMax) {
      TakeRequests();
    }
    if (!requests_.empty() && i % 100 == 0) {
      // One of them is answered now and then: the buffer must not grow by what came meanwhile.
      Answer(requests_.size() - HttpSession::kLargeAnswersMax);
      TakeRequests();
      TakeOutput();
    }
  }
  EXPECT_FALSE(session_.wants_input());
  EXPECT_LE(fed, 2 * HttpSession::kWaitingInputMax);
  EXPECT_FALSE(session_.has_more()) << "answers must come first";
  Answer(requests_.size() - HttpSession::kLargeAnswersMax);
  EXPECT_TRUE(session_.has_more()) << "no byte may follow to wake us";
}

TEST_F(HttpSessionTest, P10AnswersBehindOneThatWaitsAreBounded) {
  Feed(
      "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: "
      "application/json\r\nContent-Length: 13\r\n\r\n{\"wait\":\"1h\"}");
  std::string pages;
  for (int i = 0; i < 200; ++i) {
    pages += Get("/openapi.json");
  }
  session_.Receive(pages);
  TakeRequests();
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(TakeOutput(), "");
  engine::Reply none;
  none.body = engine::Leased{};
  session_.Answer(requests_[0].tag, none);
  EXPECT_LT(session_.output().size(), 2 * HttpSession::kOutputBytesMax);
  EXPECT_TRUE(session_.output().size() > HttpSession::kOutputBytesMax / 2);
}

TEST_F(HttpSessionTest, P10LeasesThatMayWaitAreBoundedToo) {
  const std::string lease =
      "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
      "Content-Length: 14\r\n\r\n{\"wait\":\"1ms\"}";
  for (int i = 0; i < 100; ++i) {
    session_.Receive(lease);
  }
  TakeRequests();
  EXPECT_EQ(requests_.size(), HttpSession::kWaitingLeasesMax);
  engine::Reply none;
  none.body = engine::Leased{};
  session_.Answer(requests_[0].tag, none);
  TakeRequests();
  EXPECT_EQ(requests_.size(), HttpSession::kWaitingLeasesMax + 1);
}

// A client that does not read its answers is dropped for that, and never learns of these jobs.
TEST_F(HttpSessionTest, P3LeasesInAnAnswerOfWhichNothingWentOutAreUntold) {
  const std::string lease =
      "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
      "Content-Length: 2\r\n\r\n{}";
  Feed(Get("/v1/jobs/1") + lease + lease + lease);
  ASSERT_EQ(requests_.size(), 4U);
  Answer(0);
  size_t begin_of_third = 0;
  for (uint64_t id = 1; id <= 3; ++id) {
    begin_of_third = session_.output().size();
    engine::Reply reply;
    JobView job{.id = JobId{id}};
    job.lease_token = LeaseToken{job.id, 1, id};
    reply.body = engine::Leased{{job}};
    session_.Answer(requests_[id].tag, reply);
  }
  session_.Sent(begin_of_third - 1);  // a part of the second one's answer is out
  const std::vector<LeaseToken> untold = session_.TakeUntold();
  ASSERT_EQ(untold.size(), 1U);
  EXPECT_EQ(untold[0].job, JobId{3});
  EXPECT_TRUE(session_.TakeUntold().empty());
}

// They may wait for an hour, and only who reads notices that a client of TCP has gone.
TEST_F(HttpSessionTest, InputIsTakenBehindLeasesThatWaitAndItsEndIsTheEndOfAllThatHasCome) {
  const std::string lease =
      "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
      "Content-Length: 13\r\n\r\n{\"wait\":\"1h\"}";
  for (size_t i = 0; i < HttpSession::kWaitingLeasesMax + 1; ++i) {
    session_.Receive(lease);
  }
  TakeRequests();
  ASSERT_EQ(requests_.size(), HttpSession::kWaitingLeasesMax);
  EXPECT_TRUE(session_.wants_input());
  session_.InputEnded();
  engine::Reply none;
  none.body = engine::Leased{};
  session_.Answer(requests_[0].tag, none);
  EXPECT_TRUE(session_.has_more());
  TakeRequests();
  ASSERT_EQ(requests_.size(), HttpSession::kWaitingLeasesMax + 1);
  for (size_t i = 1; i < requests_.size(); ++i) {
    session_.Answer(requests_[i].tag, none);
    TakeRequests();
  }
  session_.InputEnded();
  EXPECT_TRUE(session_.finished());
}

TEST_F(HttpSessionTest, P10InputBehindLeasesThatWaitIsBounded) {
  const std::string lease =
      "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
      "Content-Length: 13\r\n\r\n{\"wait\":\"1h\"}";
  size_t fed = 0;
  for (; session_.wants_input() && fed < size_t{10} << 20; fed += lease.size()) {
    Feed(lease);
  }
  EXPECT_EQ(requests_.size(), HttpSession::kWaitingLeasesMax);
  EXPECT_FALSE(session_.wants_input());
  EXPECT_LE(fed, 2 * HttpSession::kWaitingInputMax);
}

TEST_F(HttpSessionTest, WhatCannotBeMeantIsRefusedBeforeItsBody) {
  Feed("POST /v1/jobs?%zz HTTP/1.1\r\nHost: d\r\nContent-Length: 1000000\r\n\r\n{");
  EXPECT_THAT(TakeOutput(), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(session_.finished());
}

TEST(HttpSessionAccessTest, WhoMayAskNothingIsRefusedBeforeItsBody) {
  const delayd::test::TempDir dir;
  std::ofstream(dir.Sub("tokens")) << "admin 0123456789abcdef0123456789abcdef\n";
  ASSERT_EQ(::chmod(dir.Sub("tokens").c_str(), 0600), 0);
  const StatusOr<Access> access = Access::Create({.token_file = dir.Sub("tokens")});
  ASSERT_TRUE(access.ok()) << access.status().message();
  RequestCounts counts(Router::RouteNames().size());
  TurnedAway turned_away;
  const Router router{RouterOptions{.service = &test::kPlainReport,
                                    .counts = &counts,
                                    .turned_away = &turned_away,
                                    .access = &*access}};
  const ReaderOptions options;
  const std::string head =
      "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
      "Content-Length: 1000000\r\n";
  HttpSession stranger(options, router);
  stranger.SetPeer({.address = "192.0.2.1:4711"});
  stranger.Receive(head + "\r\n{\"pay");
  EXPECT_FALSE(stranger.Next(kNow).has_value());
  EXPECT_THAT(std::string(stranger.output()), StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(std::string(stranger.output()), HasSubstr("WWW-Authenticate: "));
  EXPECT_EQ(turned_away.last_peer, "192.0.2.1:4711");
  EXPECT_TRUE(stranger.finished());
  HttpSession guess(options, router);
  guess.Receive(Get("/v1/jobs/1") + Get("/v1/jobs/2"));
  EXPECT_FALSE(guess.Next(kNow).has_value());
  EXPECT_THAT(std::string(guess.output()), HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(std::string(guess.output()).find("HTTP/1.1", 1), std::string::npos) << "one try";
  EXPECT_TRUE(guess.finished());
  EXPECT_EQ(turned_away.untold, 2U);
  EXPECT_EQ(turned_away.last_cause, "token_needed");
  std::vector<std::string_view> paths;
  counts.ForEach([&](size_t route, int status, uint64_t) {
    EXPECT_EQ(status, 401);
    paths.push_back(Router::RouteNames().at(route).path);
  });
  EXPECT_EQ(paths, (std::vector<std::string_view>{"v1/jobs", "v1/jobs/*"}));
  HttpSession known(options, router);
  known.Receive(head + "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n{\"pay");
  EXPECT_FALSE(known.Next(kNow).has_value());
  EXPECT_EQ(known.output(), "");
  EXPECT_EQ(known.phase(), Session::Phase::kBody);
}

TEST(HttpSessionAccessTest, ALeaseThatWaitsIsRefusedOnceItsTokenIsTakenAway) {
  const delayd::test::TempDir dir;
  std::ofstream(dir.Sub("tokens")) << "enqueue gone456789abcdef\nenqueue kept456789abcdef\n";
  ASSERT_EQ(::chmod(dir.Sub("tokens").c_str(), 0600), 0);
  StatusOr<Access> access = Access::Create({.token_file = dir.Sub("tokens")});
  ASSERT_TRUE(access.ok()) << access.status().message();
  TurnedAway turned_away;
  const Router router{RouterOptions{
      .service = &test::kPlainReport, .turned_away = &turned_away, .access = &*access}};
  const ReaderOptions options;
  HttpSession session(options, router);
  const auto ask = [&session](const std::string& token, const std::string& body) {
    session.Receive(
        "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
        "Authorization: Bearer " +
        token + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return session.Next(kNow)->tag;
  };
  const std::string blanks(10'000, ' ');  // may stand before a token
  ask(blanks + "kept456789abcdef", R"({"wait":"1h"})");
  EXPECT_GE(session.held_bytes(), blanks.size());
  const uint64_t gone = ask("gone456789abcdef", R"({"wait":"1h"})");
  ask("gone456789abcdef", R"({"wait":"0s"})");
  EXPECT_TRUE(session.RefuseForbidden().empty());
  access->SetTokens({{.text = "kept456789abcdef", .caller = {.role = Role::kEnqueue}}});
  EXPECT_EQ(session.RefuseForbidden(), std::vector<uint64_t>{gone});
  EXPECT_EQ(turned_away.untold, 1U);
  EXPECT_TRUE(session.RefuseForbidden().empty()) << "once";
  EXPECT_EQ(session.output(), "") << "an answer comes before it";
  access->SetTokens({{.text = "kept456789abcdef", .caller = {.role = Role::kRead}}});
  EXPECT_EQ(session.RefuseForbidden(), std::vector<uint64_t>{0});
  const std::string output(session.output());
  EXPECT_THAT(output, StartsWith("HTTP/1.1 403 Forbidden\r\n"));
  EXPECT_THAT(output, HasSubstr("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_EQ(session.held_bytes(), output.size());
}

TEST(HttpSessionAccessTest, OnlyWhoLacksATokenOrARoleCountsAsTurnedAway) {
  const delayd::test::TempDir dir;
  std::ofstream(dir.Sub("tokens")) << "enqueue 0123456789abcdef0123456789abcdef\n";
  ASSERT_EQ(::chmod(dir.Sub("tokens").c_str(), 0600), 0);
  const StatusOr<Access> access = Access::Create({.token_file = dir.Sub("tokens")});
  ASSERT_TRUE(access.ok()) << access.status().message();
  TurnedAway turned_away;
  const Router router{RouterOptions{
      .service = &test::kPlainReport, .turned_away = &turned_away, .access = &*access}};
  const std::string end =
      " HTTP/1.1\r\nHost: d\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n";
  const ReaderOptions options;
  HttpSession producer(options, router);
  producer.SetPeer({.address = "192.0.2.1:4711"});
  producer.Receive("GET /v1/jobs/1" + end);
  const auto asked = producer.Next(kNow);
  ASSERT_TRUE(asked.has_value());
  producer.Answer(asked->tag, {.status = PermissionDenied("not there", "permission_denied")});
  EXPECT_THAT(std::string(producer.output()), StartsWith("HTTP/1.1 403 Forbidden\r\n"));
  EXPECT_EQ(turned_away.untold, 0U);
  producer.Receive("POST /v1/admin/verify" + end);
  EXPECT_FALSE(producer.Next(kNow).has_value());
  EXPECT_EQ(turned_away.untold, 1U);
  EXPECT_EQ(turned_away.last_cause, "role_needed");
}

TEST_F(HttpSessionTest, StopAnswersWhatIsUnderWayAndNoMore) {
  Feed(Get("/v1/jobs/1"));
  session_.Stop();
  Feed(Get("/v1/jobs/2"));
  EXPECT_EQ(requests_.size(), 1U);
  EXPECT_FALSE(session_.finished());
  Answer(0);
  EXPECT_THAT(TakeOutput(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(session_.finished());
}

TEST_F(HttpSessionTest, SlowRequestIsToldSoAndEnds) {
  Feed("GET /v1/jo");
  EXPECT_EQ(session_.phase(), Session::Phase::kHead);
  session_.Refuse(DeadlineExceeded("send it at once", "request_timeout"));
  const std::string output = TakeOutput();
  EXPECT_THAT(output, StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_THAT(output,
              EndsWith(R"({"type":"about:blank","title":"Request Timeout","status":408,)"
                       R"("code":"request_timeout","detail":"send it at once"})"));
  EXPECT_TRUE(session_.finished());
}

TEST_F(HttpSessionTest, CommitIsTold) {
  Feed(Get("/v1/jobs/1"));
  engine::Reply reply;
  reply.sequence = 77;
  reply.body = JobView{.id = JobId{1}};
  session_.Answer(requests_[0].tag, reply);
  EXPECT_THAT(TakeOutput(), HasSubstr("\r\nDelayd-Commit: 77\r\n"));
}

TEST_F(HttpSessionTest, AnAnswerHasTheFieldsThatBelongToIt) {
  Feed("PUT /v1/jobs/1 HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(TakeOutput(), HasSubstr("\r\nAllow: GET, HEAD, DELETE, PATCH\r\n"));
  std::string text;
  AppendResponse({.status = 503, .location = "/v1/jobs/1", .etag = "a"}, "", false, "", &text);
  EXPECT_EQ(text,
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
            "Content-Length: 0\r\nCache-Control: no-store\r\nLocation: /v1/jobs/1\r\n"
            "ETag: \"a\"\r\nRetry-After: 1\r\n\r\n");
  for (const int status : {200, 409, 429}) {
    text.clear();
    AppendResponse({.status = status}, "", false, "", &text);
    EXPECT_EQ(text.find("Retry-After: 1\r\n") != std::string::npos, status == 429) << status;
  }
}

// Nobody but the session sees these requests, and they may be dear.
TEST_F(HttpSessionTest, RequestsThatAreAnsweredOnTheSpotAreAFewATime) {
  const size_t requests = 2 * HttpSession::kAnsweredAtOnceMax + 1;
  std::string input;
  for (size_t i = 0; i < requests; ++i) {
    input += "HEAD /healthz HTTP/1.1\r\nHost: d\r\n\r\n";
  }
  session_.Receive(input);
  size_t times = 0;
  for (size_t answers = 0; answers < requests; ++times) {
    EXPECT_TRUE(session_.has_more()) << answers;
    TakeRequests();
    const std::string output = TakeOutput();
    for (size_t at = output.find("HTTP/1.1 200"); at != std::string::npos;
         at = output.find("HTTP/1.1 200", at + 1)) {
      ++answers;
    }
  }
  EXPECT_EQ(times, 3U);
  EXPECT_FALSE(session_.has_more());
}

}  // namespace
}  // namespace delayd::http
