#include "daemon/http/router.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/ack_json.h"
#include "tests/support/plain_report.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/router_fixture.h"

#include <sys/stat.h>

namespace delayd::http {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(RouterTest, AnIdempotencyKeyIsRefusedWhereARepetitionWouldBeASecondJob) {
  const auto is_taken = [this](const std::string& body, const std::string& type) {
    const Request request{.method = "POST",
                          .target = "/v1/jobs",
                          .content_type = type,
                          .body = body,
                          .has_idempotency_key = true};
    const auto routed = RouteOf(router_, request, Router::Find(request), kNow);
    const Response* response = std::get_if<Response>(&routed);
    if (response != nullptr) {
      EXPECT_EQ(response->status, 400);
      EXPECT_THAT(response->body, HasSubstr("idempotency_key_refused"));
    }
    return response == nullptr;
  };
  EXPECT_FALSE(is_taken(R"({"payload":"x"})", "application/json"));
  EXPECT_TRUE(is_taken(R"({"payload":"x","key":"k"})", "application/json"));
  EXPECT_FALSE(is_taken("{\"key\":\"k\"}\n{}\n", "application/x-ndjson"));
  EXPECT_TRUE(is_taken("{\"key\":\"k\"}\n{\"key\":\"l\"}\n", "application/x-ndjson"));
}

TEST_F(RouterTest, AConditionIsRefusedWhereItWouldBeOverlooked) {
  for (const std::string target : {"/v1/jobs/42/kick", "/v1/jobs", "/v1/queues/q/lease"}) {
    const Request request{.method = "POST",
                          .target = target,
                          .content_type = "application/json",
                          .body = "{}",
                          .if_match = "\"a\""};
    const auto routed = RouteOf(router_, request, Router::Find(request), kNow);
    ASSERT_TRUE(std::holds_alternative<Response>(routed)) << target;
    EXPECT_EQ(std::get<Response>(routed).status, 400);
    EXPECT_THAT(std::get<Response>(routed).body, HasSubstr("invalid_if_match"));
  }
}

TEST_F(RouterTest, JobRoutesBecomeCommands) {
  EXPECT_EQ(CommandOf<engine::Enqueue>("POST", "/v1/jobs", R"({"queue":"a"})").jobs.size(), 1U);
  EXPECT_EQ(std::get<JobId>(CommandOf<engine::Show>("GET", "/v1/jobs/42").job), JobId{42});
  EXPECT_EQ(std::get<JobId>(CommandOf<engine::Cancel>("DELETE", "/v1/jobs/42").job), JobId{42});
  const auto change = CommandOf<engine::Reschedule>("PATCH", "/v1/jobs/42", R"({"priority":7})");
  EXPECT_EQ(std::get<JobId>(change.job), JobId{42});
  EXPECT_EQ(change.priority, 7U);
}

TEST_F(RouterTest, IfMatchNamesTheStatesThatAChangeIsFor) {
  const auto tags = [this](std::string_view header) -> std::vector<std::string> {
    const Request request{
        .method = "DELETE", .target = "/v1/jobs/42", .if_match = std::string(header)};
    auto routed = RouteOf(router_, request, Router::Find(request), kNow);
    const Order* order = std::get_if<Order>(&routed);
    return order == nullptr ? std::vector<std::string>{"refused"}
                            : std::get<engine::Cancel>(order->command).if_tag;
  };
  using Tags = std::vector<std::string>;
  EXPECT_EQ(tags("*"), Tags{});
  EXPECT_EQ(tags(R"("a1")"), Tags{"a1"});
  EXPECT_EQ(tags(R"( "a1" , "b2","")"), (Tags{"a1", "b2", ""}));
  EXPECT_EQ(tags(R"(, "a1",, "b2" ,)"), (Tags{"a1", "b2"}));
  // A weak one is no mistake, and matches nothing.
  EXPECT_EQ(tags(R"(W/"a1")"), Tags{""});
  EXPECT_EQ(tags(R"(W/"a1", "b2",W/"")"), (Tags{"", "b2", ""}));
  for (const char* bad : {"a1",
                          R"("a1)",
                          R"(W/)",
                          R"(W/a1)",
                          R"(w/"a1")",
                          R"(W/ "a1")",
                          R"("a1",b)",
                          "",
                          ", ,",
                          R"("a1" "b2")",
                          R"("a1",*)",
                          R"(*,"a1")"}) {
    EXPECT_EQ(tags(bad), Tags{"refused"}) << bad;
    const Request patch{.method = "PATCH",
                        .target = "/v1/jobs/42",
                        .content_type = "application/json",
                        .body = R"({"priority":7})",
                        .if_match = bad};
    const auto routed = RouteOf(router_, patch, Router::Find(patch), kNow);
    EXPECT_TRUE(std::holds_alternative<Response>(routed)) << bad;
  }
}

TEST_F(RouterTest, ARouteThatTakesNoMembersTakesNoOtherBodyEither) {
  for (const char* path : {"/v1/jobs/42/kick",
                           "/v1/queues/a/jobs/by-key/k/kick",
                           "/v1/queues/a/resume",
                           "/v1/clock/accept",
                           "/v1/admin/verify"}) {
    for (const char* body : {"}{", "{", "{}{}", "[]", "null", "x", R"({"x":1})"}) {
      EXPECT_EQ(RefusalOf("POST", path, body).status, 400) << path << " " << body;
    }
    EXPECT_THAT(RefusalOf("POST", path, R"({"x":1})").body, HasSubstr("member 'x'")) << path;
  }
  CommandOf<engine::AcceptClock>("POST", "/v1/clock/accept", " { } ");
  CommandOf<engine::AcceptClock>("POST", "/v1/clock/accept", "");
}

TEST_F(RouterTest, ABodyOfBlanksSaysNothingWhereNothingNeedBeSaid) {
  for (const char* blank : {" ", "\n", "\r\n\t "}) {
    CommandOf<engine::Pause>("POST", "/v1/queues/a/pause", blank);
    CommandOf<engine::Resume>("POST", "/v1/queues/a/resume", blank);
    CommandOf<engine::KickQueue>("POST", "/v1/queues/a/kick", blank);
    CommandOf<engine::Kick>("POST", "/v1/jobs/42/kick", blank);
    CommandOf<engine::Ack>("POST", "/v1/leases/1-1-1/ack", blank);
    CommandOf<engine::AcceptClock>("POST", "/v1/clock/accept", blank);
  }
}

TEST_F(RouterTest, IdsBeginWithOneWhereverTheyStand) {
  EXPECT_EQ(RefusalOf("GET", "/v1/jobs/0").status, 400);
  const Response refused = RefusalOf("POST", "/v1/jobs:cancel-by-id", R"({"ids":[1,0]})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("member 'ids': is 0; write a whole number from 1 to"));
}

TEST_F(RouterTest, AStringThatLooksLikeAnArrayIsNone) {
  for (const char* value : {R"("[1]")", R"("")", "1", "true", "{}"}) {
    const std::string ids = std::string(R"({"ids":)") + value + "}";
    const Response refused = RefusalOf("POST", "/v1/jobs:cancel-by-id", ids);
    EXPECT_THAT(refused.body, HasSubstr("invalid_member")) << value;
    EXPECT_THAT(refused.body, HasSubstr("member 'ids': is ")) << value;
  }
  EXPECT_THAT(RefusalOf("POST", "/v1/leases:ack", R"({"tokens":"[]"})").body,
              HasSubstr("member 'tokens': is a string; write an array"));
}

TEST_F(RouterTest, KeysAndQueuesAreDecodedPerSegment) {
  const auto show =
      CommandOf<engine::Show>("GET", "/v1/queues/a%2Fb/jobs/by-key/order%3A1%2F%C3%A9");
  const auto& ref = std::get<KeyRef>(show.job);
  EXPECT_EQ(ref.queue, "a/b");
  EXPECT_EQ(ref.key, "order:1/\xC3\xA9");
}

TEST_F(RouterTest, LinesBecomeOneBatch) {
  const std::string lines = "{\"queue\":\"a\"}\n\n{\"queue\":\"b\"}\n";
  const auto enqueue =
      CommandOf<engine::Enqueue>("POST", "/v1/jobs", lines, "application/x-ndjson");
  ASSERT_EQ(enqueue.jobs.size(), 2U);
  EXPECT_EQ(enqueue.jobs[1].queue, "b");
  EXPECT_THAT(RefusalOf("POST", "/v1/jobs", "{}\n{\"quue\":1}\n", "application/x-ndjson").body,
              HasSubstr("line 2"));
  EXPECT_EQ(RefusalOf("POST", "/v1/jobs", "\n\n", "application/x-ndjson").status, 400);
}

TEST_F(RouterTest, LeaseRoutesBecomeCommands) {
  const auto lease = CommandOf<engine::Lease>(
      "POST", "/v1/queues/orders/lease", R"({"count":10,"wait":"20s","lease":"1m"})");
  EXPECT_THAT(lease.queues, ::testing::ElementsAre("orders"));
  EXPECT_EQ(lease.count, 10U);
  EXPECT_EQ(lease.wait, std::chrono::seconds(20));
  EXPECT_EQ(lease.lease, Millis(60'000));
  EXPECT_EQ(CommandOf<engine::Lease>("POST", "/v1/queues/orders/lease").count, 1U);

  const LeaseToken token{JobId{42}, 3, 255};
  const std::string path = "/v1/leases/" + FormatLeaseToken(token);
  EXPECT_EQ(CommandOf<engine::Ack>("POST", path + "/ack").token, token);
  const auto many =
      CommandOf<engine::AckMany>("POST", "/v1/leases:ack", R"({"tokens":["42-3-ff","7-1-2"]})");
  EXPECT_THAT(many.tokens, ::testing::ElementsAre(token, LeaseToken{JobId{7}, 1, 2}));
  EXPECT_THAT(
      CommandOf<engine::CancelIds>("POST", "/v1/jobs:cancel-by-id", R"({"ids":[7,8]})").jobs,
      ::testing::ElementsAre(JobId{7}, JobId{8}));
  EXPECT_EQ(CommandOf<engine::Nack>("POST", path + "/nack", R"({"delay":"5s","error":"no"})").delay,
            Millis(5000));
  EXPECT_EQ(CommandOf<engine::Bury>("POST", path + "/bury", R"({"error":"no"})").error, "no");
  EXPECT_EQ(CommandOf<engine::Extend>("POST", path + "/extend").lease, std::nullopt);
}

TEST_F(RouterTest, MembersThatMeanNothingToALeaseCallAreRefused) {
  const std::string path = "/v1/leases/" + FormatLeaseToken({JobId{42}, 3, 255});
  EXPECT_THAT(RefusalOf("POST", path + "/ack", R"({"error":""})").body, HasSubstr("takes none"));
  EXPECT_THAT(RefusalOf("POST", path + "/bury", R"({"delay":"1s"})").body,
              HasSubstr("member 'delay': is unknown; the members are error, priority\""));
  EXPECT_THAT(RefusalOf("POST", path + "/extend", R"({"counts_as_attempt":true})").body,
              HasSubstr("is unknown; the only member is lease\""));
  EXPECT_THAT(RefusalOf("POST", path + "/nack", R"({"lease":"1s"})").body,
              HasSubstr("the members are delay, error, priority, counts_as_attempt\""));
  EXPECT_EQ(RefusalOf("POST", "/v1/leases/nonsense/ack").status, 400);
}

TEST_F(RouterTest, ListReadsEveryParameter) {
  const auto list = CommandOf<engine::List>(
      "GET",
      "/v1/jobs?queue=orders&state=dead&due_before=1h&due_after=2027-01-01T09:00:00+08:00"
      "&key_prefix=order%3A&payload=true&limit=5&cursor=abc");
  EXPECT_EQ(list.queue, "orders");
  EXPECT_EQ(list.state, JobState::kDead);
  EXPECT_EQ(list.due_before, kNow.wall + std::chrono::hours(1));
  EXPECT_EQ(ToMillis(*list.due_after), 1'798'765'200'000);
  EXPECT_EQ(list.key_prefix, "order:");
  EXPECT_EQ(list.limit, 5U);
  EXPECT_EQ(list.cursor, "abc");
  EXPECT_TRUE(list.with_payload);
  EXPECT_FALSE(CommandOf<engine::List>("GET", "/v1/jobs?payload=false").with_payload);
  EXPECT_EQ(CommandOf<engine::List>("GET", "/v1/jobs?&queue=a&&limit=7&").limit, 7U);
}

TEST_F(RouterTest, BadParametersAreNamed) {
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?quue=a").body,
              HasSubstr("unknown query parameter 'quue'; did you mean 'queue'?"));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs/1?x=1").body, HasSubstr("'x'"));
  EXPECT_THAT(RefusalOf("GET", "/v1/forecast?zzz=1").body,
              HasSubstr("'zzz'; the parameters are queue, from, to, step"));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?limit=0").body,
              AllOf(HasSubstr("'limit'"), HasSubstr("\"invalid_limit\"")));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?limit=1001").body, HasSubstr("'limit'"));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?payload=yes").body, HasSubstr("'payload'"));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?state=happy").body,
              AllOf(HasSubstr("'state'"), HasSubstr("\"invalid_state\"")));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?due_before=soon").body, HasSubstr("'due_before'"));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?due_before=9999-12-31T23:59:59Z").body,
              HasSubstr("out of range; use 1970-01-01T00:00:00Z to 2286"));
  EXPECT_THAT(RefusalOf("GET", "/v1/forecast?from=2027-01-01T09:00:00").body,
              HasSubstr("has no zone"));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?due_before=40000d").body,
              HasSubstr("too long; the longest is 36500d"));
  EXPECT_THAT(RefusalOf("GET", "/v1/forecast?to=90").body, HasSubstr("has no unit; write 90s"));
  EXPECT_THAT(RefusalOf("GET", "/v1/forecast?to=09:00").body, HasSubstr("expected a time"));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?queue=a%20b").body, HasSubstr("'queue'"));
  EXPECT_THAT(RefusalOf("GET", "/v1/jobs?queue=a&queue=b").body, HasSubstr("given twice"));
  EXPECT_EQ(RefusalOf("GET", "/v1/jobs?queue=%zz").status, 400);
}

TEST_F(RouterTest, BadIdsAreRefused) {
  for (const char* id : {"abc", "0", "-1", "9007199254740992", "1x", "99999999999999999999"}) {
    EXPECT_EQ(RefusalOf("GET", std::string("/v1/jobs/") + id).status, 400) << id;
  }
}

TEST_F(RouterTest, EachRouteOfAJobOrAQueueRefusesWhatItCannotRead) {
  struct Case {
    const char* method;
    const char* target;
    const char* body;
  };

  for (const Case& one : {Case{"POST", "/v1/jobs/abc/kick", ""},
                          Case{"POST", "/v1/jobs/abc/lease", ""},
                          Case{"POST", "/v1/jobs/1/lease", R"({"lease":"x"})"},
                          Case{"PATCH", "/v1/jobs/abc", R"({"priority":7})"},
                          Case{"PATCH", "/v1/jobs/1", R"({"priority":"x"})"},
                          Case{"DELETE", "/v1/jobs/abc", ""},
                          Case{"POST", "/v1/queues/a/pause", R"({"duration":"x"})"},
                          Case{"POST", "/v1/queues/a/kick", R"({"count":"x"})"},
                          Case{"POST", "/v1/queues/a/lease", R"({"count":"x"})"},
                          Case{"POST", "/v1/leases:ack", R"({"tokens":"x"})"}}) {
    EXPECT_EQ(RefusalOf(one.method, one.target, one.body).status, 400) << one.target;
  }
}

TEST_F(RouterTest, WhoWorksOnAJobIsToldToTheEngine) {
  const std::string body = R"({"lease":"1m","client":"w1"})";
  EXPECT_EQ(CommandOf<engine::Lease>("POST", "/v1/queues/a/lease", body).client, "w1");
  const auto one = CommandOf<engine::LeaseJob>("POST", "/v1/jobs/42/lease", body);
  EXPECT_EQ(std::get<JobId>(one.job), JobId{42});
  EXPECT_EQ(one.lease, Millis(60'000));
  EXPECT_EQ(one.client, "w1");
}

TEST_F(RouterTest, UnknownPathsAndMethodsAreTold) {
  EXPECT_EQ(RefusalOf("GET", "/").status, 404);
  EXPECT_EQ(RefusalOf("GET", "/v1/jobs/").status, 400);
  EXPECT_EQ(RefusalOf("GET", "/v1/jobs/1/2").status, 404);
  const Response refused = RefusalOf("PUT", "/v1/jobs/1");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.allow, "GET, HEAD, DELETE, PATCH");
  EXPECT_EQ(RefusalOf("GET", "http://d/v1/jobs").status, 400);
}

TEST_F(RouterTest, AnUnknownPathIsToldHowAllPathsBegin) {
  const std::string told = RefusalOf("GET", "/v1/nothing").body;
  EXPECT_THAT(told, HasSubstr("begins at /v1/jobs, /v1/queues, /v1/leases, "));
  EXPECT_THAT(told, HasSubstr(" and /openapi.json\""));
  for (const RouteName& route : Router::RouteNames()) {
    const std::string path = "/" + std::string(route.path);
    EXPECT_THAT(told, HasSubstr(path.substr(0, path.find_first_of("/:", sizeof "/v1/"))));
  }
}

TEST_F(RouterTest, OtherBodiesThanJsonAreRefused) {
  EXPECT_EQ(RefusalOf("POST", "/v1/jobs", "a=1", "application/x-www-form-urlencoded").status, 415);
  EXPECT_EQ(RefusalOf("POST", "/v1/jobs").status, 415);
  EXPECT_THAT(RefusalOf("POST", "/v1/jobs").body, HasSubstr("there is no Content-Type; send"));
  EXPECT_EQ(RefusalOf("PATCH", "/v1/jobs/1", "{}", "application/x-ndjson").status, 415);
  EXPECT_EQ(RefusalOf("DELETE", "/v1/jobs/1", "{}").status, 400);
}

TEST_F(RouterTest, HealthNeedsNoEngine) {
  EXPECT_THAT(RefusalOf("GET", "/healthz").body, HasSubstr("\"ok\""));
  EXPECT_THAT(RefusalOf("HEAD", "/readyz").body, HasSubstr("1.2.3"));
}

TEST_F(RouterTest, AdminRoutesGoToTheStore) {
  EXPECT_TRUE(std::holds_alternative<VerifyCommand>(
      std::get<AdminOrder>(Route("POST", "/v1/admin/verify")).command));
  EXPECT_TRUE(std::holds_alternative<VerifyCommand>(
      std::get<AdminOrder>(Route("POST", "/v1/admin/verify", "{}")).command));
  const auto backup = Route("POST", "/v1/admin/backup", R"({"dir":"/b"})");
  EXPECT_EQ(std::get<BackUpCommand>(std::get<AdminOrder>(backup).command).directory, "/b");
  EXPECT_EQ(RefusalOf("POST", "/v1/admin/backup", R"({"dir":"b"})").status, 400);
  EXPECT_EQ(RefusalOf("POST", "/v1/admin/backup").status, 400);
  EXPECT_EQ(RefusalOf("POST", "/v1/admin/verify", R"({"repair":true})").status, 400);
  EXPECT_EQ(RefusalOf("GET", "/v1/admin/verify").status, 405);
}

TEST_F(RouterTest, ADrainBeginsAndEnds) {
  EXPECT_TRUE(CommandOf<engine::Drain>("POST", "/v1/admin/drain", R"({"on":true})").on);
  EXPECT_FALSE(CommandOf<engine::Drain>("POST", "/v1/admin/drain", R"({"on":false})").on);
  EXPECT_EQ(RefusalOf("POST", "/v1/admin/drain", R"({"on":1})").status, 400);
}

TEST_F(RouterTest, OnlyJobsMayComeInBulk) {
  EXPECT_EQ(router_.BodyBytesMax("POST", "/v1/jobs"), limits::kRequestBodyBytesMax);
  EXPECT_EQ(router_.BodyBytesMax("POST", "/v1/jobs?x=1"), limits::kRequestBodyBytesMax);
  EXPECT_EQ(router_.BodyBytesMax("GET", "/healthz"), 0U) << "which anybody may ask";
  EXPECT_EQ(router_.BodyBytesMax("GET", "/readyz?x=1"), 0U);
  EXPECT_EQ(router_.BodyBytesMax("PUT", "/v1/jobs"), 65536U);
  EXPECT_EQ(router_.BodyBytesMax("GET", "/v1/jobs"), 65536U);
  EXPECT_EQ(router_.BodyBytesMax("POST", "/v1/queues/a/lease"), 65536U);
  EXPECT_EQ(router_.BodyBytesMax("POST", "/v1/leases/1-2-3/nack"), 1048576U);
  EXPECT_EQ(router_.BodyBytesMax("POST", "/v1/leases/1-2-3/bury"), 1048576U);
}

JobView Job(uint64_t id) {
  return {.id = JobId{id}, .queue = "orders"};
}

TEST(RouterRenderTest, NewJobIs201AndExistingOneIs200) {
  engine::Reply reply;
  reply.sequence = 9;
  reply.body = engine::Enqueued{{{Job(42), false}}};
  Response response = Router::Render(ReplyForm::kEnqueuedOne, reply);
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.location, "/v1/jobs/42");
  EXPECT_EQ(response.commit_sequence, 9U);
  reply.body = engine::Enqueued{{{Job(42), true}}};
  EXPECT_EQ(Router::Render(ReplyForm::kEnqueuedOne, reply).status, 200);
}

TEST(RouterRenderTest, LinesAnswerOneLineAJob) {
  engine::Reply reply;
  reply.body = engine::Enqueued{{{Job(1), true}, {Job(2), false}}};
  const Response response = Router::Render(ReplyForm::kEnqueuedLines, reply);
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.content_type, "application/x-ndjson");
  EXPECT_EQ(std::count(response.body.begin(), response.body.end(), '\n'), 2);
}

TEST(RouterRenderTest, IdsAloneHaveTheSameStatusAsWholeJobs) {
  engine::Reply reply;
  reply.body = engine::EnqueuedIds{{{JobId{1}, true}, {JobId{2}, false}}};
  const Response response = Router::Render(ReplyForm::kEnqueuedIds, reply);
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "{\"id\":1,\"existed\":true}\n{\"id\":2,\"existed\":false}\n");
  reply.body = engine::EnqueuedIds{{{JobId{1}, true}}};
  EXPECT_EQ(Router::Render(ReplyForm::kEnqueuedIds, reply).status, 200);
}

TEST(RouterRenderTest, ManyAcksTellWhichLeasesWereOver) {
  engine::Reply reply;
  reply.body = engine::AckedMany{.acked = 9, .lost = {{JobId{42}, 3, 255}}};
  EXPECT_EQ(Router::Render(ReplyForm::kAcked, reply).body, R"({"acked":9,"lost":["42-3-ff"]})");
}

TEST(RouterRenderTest, ManyCancelsTellWhichWereRefused) {
  engine::Reply reply;
  reply.body = engine::CancelledIds{.cancelled = 9,
                                    .refused = {{JobId{42}, FailedPrecondition("x", "leased")}}};
  EXPECT_EQ(Router::Render(ReplyForm::kCancelledIds, reply).body,
            R"({"cancelled":9,"refused":[{"id":42,"code":"leased"}]})");
}

TEST(RouterRenderTest, LeaseWithoutAJobIsAnEmptyList) {
  engine::Reply reply;
  reply.body = engine::Leased{};
  const Response response = Router::Render(ReplyForm::kLeased, reply);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"jobs":[]})");
}

TEST(RouterRenderTest, EveryFailureIsAProblemWithItsCode) {
  engine::Reply reply;
  reply.sequence = 3;
  reply.status = FailedPrecondition("job 42: the lease has ended", "lease_lost");
  Response response = Router::Render(ReplyForm::kOneJob, reply);
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_THAT(response.body, HasSubstr("\"lease_lost\""));
  EXPECT_EQ(response.commit_sequence, 3U);
  reply.status = Unknown("it may have happened", "outcome_unknown");
  response = Router::Render(ReplyForm::kEnqueuedOne, reply);
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("\"outcome_unknown\""));
}

TEST(RouterRenderTest, AJobHasATagUnlessItIsLeasedWithThisAnswer) {
  const auto tag = [](std::optional<LeaseToken> token) {
    engine::Reply reply;
    reply.body = JobView{.id = JobId{1}, .lease_token = token};
    return Router::Render(ReplyForm::kOneJob, reply).etag;
  };
  EXPECT_NE(tag(std::nullopt), "");
  EXPECT_EQ(tag(LeaseToken{JobId{1}, 2, 3}), "");
}

TEST(RouterRenderTest, AListOfNoQueueIsEmpty) {
  engine::Reply reply;
  reply.body = engine::QueueList{};
  EXPECT_EQ(Router::Render(ReplyForm::kQueueList, reply).body, R"({"queues":[]})");
}

TEST(RouterRenderTest, StatsTellWhatBecameOfTheClockAndOfADrain) {
  const auto shown = [](bool draining) {
    engine::StatsView stats;
    stats.clock = "held";
    stats.draining = draining;
    engine::Reply reply;
    reply.body = Indirect<engine::StatsView>(stats);
    return Router::Render(ReplyForm::kStats, reply).body;
  };
  EXPECT_THAT(shown(true), AllOf(HasSubstr(R"("clock":"held")"), HasSubstr(R"("draining")")));
  EXPECT_THAT(shown(false), HasSubstr(R"("serving")"));
}

TEST(RouterRenderTest, ARateIsShownAsItIsConfigured) {
  const auto shown = [](Millis per, uint32_t count = 5) {
    engine::Reply reply;
    reply.body = engine::QueueList{
        .queues = {{.name = "q", .rate = {.count = count, .per = per, .burst = 1}}}};
    return Router::Render(ReplyForm::kOneQueue, reply).body;
  };
  EXPECT_THAT(shown(Millis(1000)), HasSubstr(R"("rate":"5/s","burst":1)"));
  EXPECT_THAT(shown(Millis(60'000)), HasSubstr(R"("rate":"5/m")"));
  EXPECT_THAT(shown(Millis(1)), HasSubstr(R"("rate":"5/ms")"));
  EXPECT_THAT(shown(Millis(600'000)), HasSubstr(R"("rate":"5/10m")"));
  EXPECT_THAT(shown(Millis(90'000)), HasSubstr(R"("rate":"5/1m30s")"));
  EXPECT_THAT(shown(Millis(1000), 1), HasSubstr(R"("rate":"1/s")"));
  EXPECT_THAT(shown(Millis(1000), 0), Not(HasSubstr("1/s")));
}

class RouterAccessTest : public ::testing::Test {
 protected:
  static Access Make(Role others) {
    StatusOr<Access> access = Access::Create({.others = others});
    EXPECT_TRUE(access.ok());
    return *std::move(access);
  }

  // Over TCP it wants a token: 0123456789abcdef.
  static Access MakeWithToken() {
    const delayd::test::TempDir directory;
    const std::string path = directory.Sub("tokens");
    std::ofstream(path) << "read 0123456789abcdef\n";
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
    StatusOr<Access> access = Access::Create({.token_file = path});
    EXPECT_TRUE(access.ok()) << access.status().message();
    return *std::move(access);
  }

  // The status of a request by a user who is in no list.
  static int StatusFor(Role others, const std::string& method, const std::string& target) {
    const Access access = Make(others);
    const Router router({.service = &test::kPlainReport, .access = &access});
    Request request{.method = method, .target = target};
    const FoundRoute found = Router::Find(request);
    const auto admitted = router.Admit({.known = true, .uid = 4711, .groups = {}}, request, found);
    request.role = std::get<Caller>(admitted).role;
    const auto routed = RouteOf(router, request, found, kNow);
    const auto* response = std::get_if<Response>(&routed);
    return response != nullptr ? response->status : 0;
  }
};

TEST_F(RouterAccessTest, EachRouteNeedsItsRole) {
  EXPECT_EQ(StatusFor(Role::kNone, "GET", "/healthz"), 200);
  EXPECT_EQ(StatusFor(Role::kNone, "GET", "/v1/stats"), 403);
  EXPECT_EQ(StatusFor(Role::kNone, "GET", "/metrics"), 403);
  EXPECT_EQ(StatusFor(Role::kRead, "GET", "/v1/stats"), 0) << "0: goes to the engine";
  EXPECT_EQ(StatusFor(Role::kRead, "DELETE", "/v1/jobs/1"), 403);
  EXPECT_EQ(StatusFor(Role::kEnqueue, "DELETE", "/v1/jobs/1"), 0);
  EXPECT_EQ(StatusFor(Role::kEnqueue, "POST", "/v1/clock/accept"), 403);
  EXPECT_EQ(StatusFor(Role::kEnqueue, "POST", "/v1/admin/verify"), 403);
  EXPECT_EQ(StatusFor(Role::kAdmin, "POST", "/v1/clock/accept"), 0);
}

TEST_F(RouterAccessTest, JobsCountAgainstTheQuotaOfWhoEnqueuesThemAndAdminsHaveNoLimit) {
  const auto enqueue = [](uint64_t max, Role role) {
    const Router router({.service = &test::kPlainReport, .user_jobs_max = max});
    const Request request{.method = "POST",
                          .target = "/v1/jobs",
                          .content_type = "application/json",
                          .body = "{}",
                          .role = role,
                          .user = "uid:4711"};
    const auto routed = RouteOf(router, request, Router::Find(request), kNow);
    return std::get<engine::Enqueue>(std::get<Order>(routed).command);
  };
  EXPECT_EQ(enqueue(0, Role::kEnqueue).user, "") << "without a quota nothing is counted";
  EXPECT_EQ(enqueue(5, Role::kEnqueue).user, "uid:4711");
  EXPECT_EQ(enqueue(5, Role::kEnqueue).user_jobs_max, 5U);
  EXPECT_EQ(enqueue(5, Role::kAdmin).user, "uid:4711");
  EXPECT_EQ(enqueue(5, Role::kAdmin).user_jobs_max, 0U);
}

TEST_F(RouterAccessTest, ARefusalNamesTheRoleThatIsNeeded) {
  const Router router(RouterOptions{.service = &test::kPlainReport});
  const Request request{.method = "DELETE", .target = "/v1/jobs/1", .role = Role::kRead};
  const auto routed = RouteOf(router, request, Router::Find(request), kNow);
  EXPECT_THAT(std::get<Response>(routed).body, HasSubstr("needs the role enqueue"));
  EXPECT_THAT(std::get<Response>(routed).body, HasSubstr("role_needed"));
}

// RFC 9110 section 11.4.
TEST_F(RouterAccessTest, SeveralBlanksMayStandBeforeAToken) {
  const Access access = MakeWithToken();
  const Router router({.service = &test::kPlainReport, .access = &access});
  const auto is_known = [&router](std::string_view header) {
    return std::holds_alternative<Caller>(
        router.Admit({}, {.target = "/v1/stats", .authorization = std::string(header)}, {}));
  };
  EXPECT_TRUE(is_known("Bearer 0123456789abcdef"));
  EXPECT_TRUE(is_known("bearer   0123456789abcdef"));
  EXPECT_FALSE(is_known("Bearer"));
  EXPECT_FALSE(is_known("Bearer   "));
  EXPECT_FALSE(is_known("Bearer0123456789abcdef"));
}

TEST_F(RouterAccessTest, WithoutATokenHealthIsAskedForAndAWrongMethodIsToldSo) {
  const Access access = MakeWithToken();
  const Router router({.service = &test::kPlainReport, .access = &access});
  const auto status = [&router](const std::string& method, const std::string& target) {
    Request request{.method = method, .target = target};
    const FoundRoute found = Router::Find(request);
    const auto admitted = router.Admit({}, request, found);
    if (const auto* refusal = std::get_if<Response>(&admitted)) {
      return refusal->status;
    }
    request.role = std::get<Caller>(admitted).role;
    return std::get<Response>(RouteOf(router, request, found, kNow)).status;
  };
  EXPECT_EQ(status("HEAD", "/readyz"), 200);
  EXPECT_EQ(status("POST", "/healthz"), 405);
  EXPECT_EQ(status("GET", "/v1/stats"), 401);
  EXPECT_EQ(status("POST", "/v1/stats"), 401);
  EXPECT_EQ(status("GET", "/"), 401);
}

// As a proxy passes it on that asks for passwords itself.
TEST_F(RouterAccessTest, WhatIsNoTokenIsNotCalledAnUnknownOne) {
  const Access access = Make(Role::kEnqueue);
  const Router router({.service = &test::kPlainReport, .access = &access});
  for (const char* header : {"Basic c2hvcDpzZWNyZXQ=", "0123456789abcdef", "Bearer"}) {
    const auto admitted = router.Admit({.known = true, .uid = 0, .groups = {}},
                                       {.target = "/v1/stats", .authorization = header},
                                       {});
    const Response& refused = std::get<Response>(admitted);
    EXPECT_EQ(refused.status, 401);
    EXPECT_THAT(refused.body, ::testing::HasSubstr("Authorization takes 'Bearer TOKEN' alone"));
  }
}

TEST_F(RouterAccessTest, AnUnknownTokenIsRefusedAlsoWhereNoneIsNeeded) {
  const Access access = Make(Role::kEnqueue);
  const Router router({.service = &test::kPlainReport, .access = &access});
  const auto admitted = router.Admit({.known = true, .uid = 0, .groups = {}},
                                     {.target = "/v1/stats", .authorization = "Bearer nonsense"},
                                     {});
  EXPECT_EQ(std::get<Response>(admitted).status, 401);
  EXPECT_TRUE(std::get<Response>(admitted).ask_for_token);
}

}  // namespace
}  // namespace delayd::http
