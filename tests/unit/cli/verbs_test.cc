#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using protocol::EnqueuedToJson;
using protocol::JobPageToJson;
using protocol::JobToJson;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

FakeDaemon::Function Always(const Answer& answer) {
  return [answer](const Request&) { return answer; };
}

const FakeDaemon::Function kCreates = Always(Ok(EnqueuedToJson({SomeJob(), false}), 201));

TEST(EnqueueVerbTest, PrintsTheIdAndNothingElse) {
  const Outcome outcome = Ctl({"enqueue",
                               "--in",
                               "30m",
                               "--queue",
                               "orders",
                               "--key",
                               "order:1001",
                               R"({"order_id":1001})"},
                              {.daemon = kCreates});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "42\n");
  EXPECT_EQ(outcome.err, "");
  ASSERT_EQ(outcome.requests.size(), 1U);
  EXPECT_EQ(outcome.requests[0].method, "POST");
  EXPECT_EQ(outcome.requests[0].target, "/v1/jobs");
  EXPECT_EQ(outcome.requests[0].content_type, "application/json");
  EXPECT_EQ(
      outcome.requests[0].body,
      R"({"queue":"orders","delay":"30m","key":"order:1001","payload":"{\"order_id\":1001}"})");
}

TEST(EnqueueVerbTest, SendsEveryOption) {
  const Outcome outcome = Ctl({"enqueue",
                               "--at",
                               "2027-01-01T09:00:00+08:00",
                               "--priority",
                               "7",
                               "--lease",
                               "90s",
                               "--max-attempts",
                               "0",
                               "--expires-after",
                               "1h",
                               "x"},
                              {.daemon = kCreates});
  EXPECT_EQ(outcome.requests.at(0).body,
            R"({"queue":"default","due":"2027-01-01T01:00:00.000Z","priority":7,"lease":"1m30s",)"
            R"("max_attempts":0,"expires_after":"1h","payload":"x"})");
}

TEST(EnqueueVerbTest, PayloadsThatLookLikeOptionsOrListsPassUnchanged) {
  for (const char* payload : {"[1,2]", "[]", "{}", "a b", "'q'", "\"q\"", "--"}) {
    const Outcome outcome = Ctl({"enqueue", "--", payload}, {.daemon = kCreates});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(protocol::ParseJobSpec(outcome.requests.at(0).body, 100)->payload, payload);
  }
  EXPECT_EQ(protocol::ParseJobSpec(
                Ctl({"enqueue", "[1,2]"}, {.daemon = kCreates}).requests.at(0).body, 100)
                ->payload,
            "[1,2]");
}

TEST(EnqueueVerbTest, ADashReadsStdinByteForByte) {
  const std::string bytes("\xff\0\n", 3);
  const Outcome outcome = Ctl({"enqueue", "-"}, {.daemon = kCreates, .input = bytes});
  EXPECT_EQ(protocol::ParseJobSpec(outcome.requests.at(0).body, 100)->payload, bytes);
}

TEST(EnqueueVerbTest, ATerminalIsToldHowToTakeItBack) {
  const Outcome outcome =
      Ctl({"enqueue", "x"}, {.daemon = kCreates, .traits = {.err_is_terminal = true}});
  EXPECT_EQ(outcome.out, "42\n");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("due in 30m"), HasSubstr("delayctl cancel 42")));
}

TEST(EnqueueVerbTest, AConflictIsRefusedWithExitCode4) {
  const Outcome outcome =
      Ctl({"enqueue", "--key", "k", "x"},
          {.daemon = Always(Problem(AlreadyExists("key k: other content", "key_conflict")))});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err, "delayctl: key k: other content\n");
}

TEST(EnqueueVerbTest, AConflictIsExplainedByTheOptionAndNotByTheFieldOfTheApi) {
  const Status conflict = AlreadyExists(
      "key on_conflict is taken; use another key, or enqueue with on_conflict", "key_conflict");
  const Outcome outcome =
      Ctl({"enqueue", "--key", "on_conflict", "x"}, {.daemon = Always(Problem(conflict))});
  EXPECT_EQ(outcome.err,
            "delayctl: key on_conflict is taken; use another key, or enqueue with "
            "--on-conflict\n");
}

TEST(EnqueueVerbTest, APayloadThatIsTooLargeIsNoMemberOfTheApi) {
  const Status too_large = ResourceExhausted(
      "member 'payload_base64': payload has 9 bytes and the limit is 8B", "payload_too_large");
  const Outcome outcome = Ctl({"enqueue", "x"}, {.daemon = Always(Problem(too_large))});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "delayctl: payload has 9 bytes and the limit is 8B\n");
}

TEST(EnqueueVerbTest, AnUnknownOutcomeIsSafeToRepeatOnlyByAKeyThatFails) {
  const auto lost = Always(Unknown("connection lost", "outcome_unknown"));
  EXPECT_THAT(Ctl({"enqueue", "--key", "k", "x"}, {.daemon = lost}).err,
              HasSubstr("repeating it is safe"));
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"enqueue", "x"}, {"enqueue", "--key", "k", "--on-conflict", "keep", "x"}}) {
    const Outcome outcome = Ctl(args, {.daemon = lost});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "delayctl: connection lost\n");
  }
}

// Two pages and an empty one between them, as a filtered list may answer.
Answer ThreePages(const Request& request) {
  if (request.target.find("cursor=c2") != std::string::npos) {
    return Ok(JobPageToJson({.jobs = {SomeJob(3)}, .next_cursor = ""}));
  }
  if (request.target.find("cursor=c%2F1") != std::string::npos) {
    return Ok(JobPageToJson({.jobs = {}, .next_cursor = "c2"}));
  }
  return Ok(JobPageToJson({.jobs = {SomeJob(1), SomeJob(2)}, .next_cursor = "c/1"}));
}

// Exit code 5 would say that nothing happened: a second enqueue without a key is a second job.
TEST(EnqueueVerbTest, AProxyThatLostTheAnswerDoesNotSayThatNothingHappened) {
  const auto bad_gateway = Always(Ok("<html>", 502));
  const Outcome lost = Ctl({"enqueue", "x"}, {.daemon = bad_gateway});
  EXPECT_EQ(lost.code, 1);
  EXPECT_THAT(lost.err, HasSubstr("may have been carried out"));
  EXPECT_EQ(Ctl({"cancel", "1"}, {.daemon = bad_gateway}).code, 1);
  EXPECT_EQ(Ctl({"enqueue", "x"}, {.daemon = Always(Ok("<html>", 504))}).code, 6);
  EXPECT_EQ(Ctl({"list"}, {.daemon = bad_gateway}).code, 5);
  // nginx that is out of connections, Envoy and Cloudflare that lost the daemon.
  for (const int status : {500, 503, 524}) {
    const Outcome outcome = Ctl({"enqueue", "x"}, {.daemon = Always(Ok("<html>", status))});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("may have been carried out"));
  }
}

TEST(ListVerbTest, FollowsCursorsToTheEnd) {
  const Outcome outcome = Ctl({"list", "--all", "-q"}, {.daemon = ThreePages});
  EXPECT_EQ(outcome.out, "1\n2\n3\n");
  EXPECT_EQ(outcome.requests.size(), 3U);
  EXPECT_EQ(outcome.requests[0].target, "/v1/jobs?limit=1000");
}

TEST(ListVerbTest, StopsAtTheLimitAndSendsTheFilters) {
  const Outcome outcome = Ctl({"list",
                               "--queue",
                               "orders",
                               "--state",
                               "ready",
                               "--due-before",
                               "1h",
                               "--due-after",
                               "2027-01-01T00:00:00+01:00",
                               "--key-prefix",
                               "order:",
                               "-n",
                               "2",
                               "-q"},
                              {.daemon = ThreePages});
  EXPECT_EQ(outcome.out, "1\n2\n");
  ASSERT_EQ(outcome.requests.size(), 1U);
  EXPECT_EQ(
      outcome.requests[0].target,
      "/v1/jobs?queue=orders&state=ready&due_before=1h&due_after=2027-01-01T00%3A00%3A00%2B01%3A00"
      "&key_prefix=order%3A&limit=2");
}

TEST(ListVerbTest, PrintsATable) {
  const Outcome outcome = Ctl({"list", "-n", "2"}, {.daemon = ThreePages});
  EXPECT_EQ(outcome.out,
            "ID  QUEUE   KEY         STATE      DUE                       LEFT  CLOCK     ATTEMPT\n"
            "1   orders  order:1001  scheduled  2027-01-01T09:30:00.000Z  30m   relative  0/25\n"
            "2   orders  order:1001  scheduled  2027-01-01T09:30:00.000Z  30m   relative  0/25\n");
}

TEST(TokenOptionTest, ATokenIsNotSentInClearToOtherMachines) {
  for (const char* server :
       {"http://jobs.example", "http://127.jobs.example", "http://10.0.0.1:80", "http://[::2]"}) {
    const Outcome outcome = Ctl({"--server", server, "--token-file", "/nowhere", "stats"});
    EXPECT_EQ(outcome.code, 2) << server;
    EXPECT_THAT(outcome.err, HasSubstr("in clear")) << server;
  }
  for (const char* server :
       {"http://localhost", "http://127.0.0.2", "http://[::1]:1", "https://jobs.example"}) {
    EXPECT_THAT(Ctl({"--server", server, "--token-file", "/nowhere", "stats"}).err,
                HasSubstr("cannot read the token file"))
        << server;
  }
}

// Nobody is told to change the mode of /dev/null.
TEST(TokenOptionTest, WhatIsNoFileIsToldAsThat) {
  const delayd::test::TempDir own;  // nobody else may look into it
  for (const std::string& path : {std::string("/dev/null"), std::string("/"), own.path()}) {
    const Outcome outcome = Ctl({"--server", "unix:/x", "--token-file", path, "stats"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("is no file"), Not(HasSubstr("chmod"))));
  }
}

// It was told to hold no single token.
TEST(TokenOptionTest, ADiskThatFailsIsToldAsThat) {
  const Outcome outcome = Ctl({"--server", "unix:/x", "--token-file", "/proc/self/mem", "stats"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("/proc/self/mem: Input/output error"));
}

TEST(ListVerbTest, TellsWhichClockAJobFollows) {
  const Outcome outcome = Ctl({"list"}, {.daemon = [](const Request&) {
                                JobView wall = SomeJob(2);
                                wall.due_kind = DueKind::kAbsolute;
                                return Ok(JobPageToJson({.jobs = {SomeJob(1), wall}}));
                              }});
  EXPECT_THAT(outcome.out, HasSubstr("  30m   relative  0/25\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  30m   wall      0/25\n"));
}

TEST(ListVerbTest, JsonIsOneDocumentOverAllPages) {
  const Outcome outcome = Ctl({"list", "--all", "-o", "json"}, {.daemon = ThreePages});
  const auto page = protocol::ParseJobPage(outcome.out);
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(page->jobs.size(), 3U);
  EXPECT_EQ(page->next_cursor, "");
  EXPECT_EQ(
      protocol::ParseJobPage(Ctl({"list", "-n", "2", "-o", "json"}, {.daemon = ThreePages}).out)
          ->next_cursor,
      "c/1");
}

TEST(ListVerbTest, NothingIsNotAnError) {
  const auto empty = Always(Ok(R"({"jobs":[]})"));
  EXPECT_EQ(Ctl({"list", "-o", "jsonl"}, {.daemon = empty}).out, "");
  EXPECT_EQ(Ctl({"list", "-o", "json"}, {.daemon = empty}).out, "{\"jobs\":[]}\n");
  EXPECT_EQ(Ctl({"list"}, {.daemon = empty}).code, 0);
}

TEST(ShowVerbTest, ShowsACardWithThePayloadEscaped) {
  JobView job = SomeJob();
  job.payload = "a\x1b[2J";
  job.last_error = "line\nbreak";
  const Outcome outcome = Ctl({"show", "42"}, {.daemon = Always(Ok(JobToJson(job)))});
  EXPECT_EQ(outcome.requests.at(0).target, "/v1/jobs/42");
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("id             42\n"),
                    HasSubstr("due            2027-01-01T09:30:00.000Z (in 30m, real time)\n"),
                    HasSubstr("last error     line\\x0abreak\n"),
                    HasSubstr("\na\\x1b[2J\n")));
}

TEST(ShowVerbTest, TheCardOfAFinishedJobTellsAllOfIt) {
  JobView job = SomeJob();
  job.state = JobState::kFinished;
  job.payload = std::nullopt;
  job.delay = Millis(0);  // none to start again
  job.expires_after = Millis(3'600'000);
  job.lateness = Millis(5);
  job.finished = WallFromMillis(kTestNow);
  job.outcome = "acked";
  job.client = "c:7";
  job.history = {{.kind = JobEvent::Kind::kAcked, .at = WallFromMillis(kTestNow), .who = "c:7"}};
  EXPECT_EQ(Ctl({"show", "42"}, {.daemon = Always(Ok(JobToJson(job)))}).out,
            "id             42\n"
            "queue          orders\n"
            "key            order:1001\n"
            "state          finished\n"
            "due            2027-01-01T09:30:00.000Z (in 30m, real time)\n"
            "created        2027-01-01T09:00:00.000Z\n"
            "priority       1024\n"
            "lease          1m\n"
            "attempt        0/25\n"
            "expires after  1h\n"
            "late           5ms\n"
            "finished       2027-01-01T09:00:00.000Z\n"
            "outcome        acked\n"
            "worker         c:7\n"
            "history        2027-01-01T09:00:00.000Z acked by c:7\n"
            "payload        17 bytes, not kept\n");
}

TEST(ShowVerbTest, APayloadThatIsNotKeptIsNoEmptyOne) {
  JobView job = SomeJob();
  job.state = JobState::kFinished;
  job.payload = "";
  const Outcome outcome = Ctl({"show", "42", "-p"}, {.daemon = Always(Ok(JobToJson(job)))});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, "delayctl: the payload of job 42, 17 bytes, is not kept\n");
  job.lease = Millis(0);  // no history
  EXPECT_EQ(Ctl({"show", "42", "-p"}, {.daemon = Always(Ok(JobToJson(job)))}).code, 3);
}

TEST(ShowVerbTest, ByKeyAndPayloadOnlyGivesItsBytes) {
  JobView job = SomeJob();
  job.payload = std::string("\x1b\0\xff", 3);
  const Outcome outcome = Ctl({"show", "--queue", "a/b", "--key", "k 1", "--payload"},
                              {.daemon = Always(Ok(JobToJson(job)))});
  EXPECT_EQ(outcome.requests.at(0).target, "/v1/queues/a%2Fb/jobs/by-key/k%201");
  EXPECT_EQ(outcome.out, *job.payload);
}

TEST(CancelVerbTest, SaysWhatWasCancelled) {
  const Outcome outcome = Ctl({"cancel", "42"}, {.daemon = Always(Ok(JobToJson(SomeJob())))});
  EXPECT_EQ(outcome.requests.at(0).method, "DELETE");
  EXPECT_EQ(outcome.out, "cancelled job 42 in queue orders, it was due in 30m\n");
}

TEST(CancelVerbTest, PartOfThemIsExitCode1AndAllOfThemTheirOwn) {
  const auto daemon = [](const Request& request) {
    return request.target == "/v1/jobs/1" ? Ok(JobToJson(SomeJob(1)))
                                          : Problem(NotFound(request.target + " is not known"));
  };
  const Outcome some = Ctl({"cancel", "1", "2", "3", "-q"}, {.daemon = daemon});
  EXPECT_EQ(some.code, 1);
  EXPECT_EQ(some.out, "1\n");
  EXPECT_EQ(some.err, "delayctl: /v1/jobs/2 is not known\ndelayctl: /v1/jobs/3 is not known\n");
  EXPECT_EQ(Ctl({"cancel", "2", "3"}, {.daemon = daemon}).code, 3);
}

TEST(CancelVerbTest, ALeasedJobIsExitCode4) {
  const auto daemon = Always(Problem(FailedPrecondition("job 42 is leased", "leased")));
  EXPECT_EQ(Ctl({"cancel", "42"}, {.daemon = daemon}).code, 4);
}

TEST(CancelVerbTest, AnAbsentDaemonIsSaidOnce) {
  const Outcome outcome =
      Ctl({"cancel", "1", "2", "3"}, {.daemon = Always(Unavailable("nobody", "unreachable"))});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.err, "delayctl: nobody (job 1; not tried: 2 3)\n");
}

TEST(RescheduleVerbTest, SaysOfAJobThatIsDueAlreadyThatItWas) {
  JobView job = SomeJob();
  job.due -= std::chrono::minutes(30) + Millis(8);
  const Outcome outcome =
      Ctl({"reschedule", "42", "--in", "0s"}, {.daemon = Always(Ok(JobToJson(job)))});
  EXPECT_EQ(outcome.out,
            "job 42 in queue orders was due 8ms ago (2027-01-01T08:59:59.992Z), priority 1024\n");
}

TEST(RescheduleVerbTest, SendsTheChange) {
  const Outcome outcome = Ctl({"reschedule", "42", "--in", "10m", "--priority", "1"},
                              {.daemon = Always(Ok(JobToJson(SomeJob())))});
  EXPECT_EQ(outcome.requests.at(0).method, "PATCH");
  EXPECT_EQ(outcome.requests.at(0).body, R"({"delay":"10m","priority":1})");
  EXPECT_EQ(outcome.out,
            "job 42 in queue orders is due in 30m (2027-01-01T09:30:00.000Z), priority 1024\n");
}

JobView LeasedJob() {
  JobView job = SomeJob();
  job.state = JobState::kLeased;
  job.attempt = 1;
  job.lease_token = LeaseToken{job.id, 3, 31};
  job.lateness = Millis(4);
  return job;
}

TEST(LeaseVerbTest, PrintsTokensAndWaitsLongerThanTheServer) {
  const auto daemon = Always(Ok(JobPageToJson({.jobs = {LeasedJob()}, .next_cursor = ""})));
  const Outcome outcome =
      Ctl({"lease", "--queue", "orders", "--wait", "20s", "--count", "5", "--lease", "2m", "-q"},
          {.daemon = daemon});
  EXPECT_EQ(outcome.out, "42-3-1f\n");
  EXPECT_EQ(outcome.requests.at(0).target, "/v1/queues/orders/lease");
  // Behind it: which process asks, for the job's history.
  EXPECT_THAT(outcome.requests.at(0).body,
              StartsWith(R"({"count":5,"wait":"20s","lease":"2m","client":")"));
  EXPECT_EQ(outcome.requests.at(0).timeout, Millis(25'000));
  EXPECT_EQ(Ctl({"lease"}, {.daemon = daemon}).out,
            "ID  KEY         ATTEMPT  LATE  TOKEN    PAYLOAD\n"
            "42  order:1001  1        4ms   42-3-1f  {\"order_id\":1001}\n");
}

TEST(LeaseVerbTest, ARefusalIsNoEmptyQueue) {
  const Outcome outcome =
      Ctl({"lease"}, {.daemon = Always(Problem(PermissionDenied("not yours")))});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.err, "delayctl: not yours\n");
}

TEST(LeaseVerbTest, NoJobInTimeIsExitCode6) {
  const Outcome outcome = Ctl({"lease", "--wait", "1ms"}, {.daemon = Always(Ok(R"({"jobs":[]})"))});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_THAT(outcome.err, HasSubstr("no job in queue default was ready within 1ms"));
  EXPECT_EQ(outcome.out, "");
}

TEST(LeaseVerbTest, AWaitThatTheDaemonEndsBeforeItsTimeIsNoTimeout) {
  const Outcome outcome = Ctl({"lease", "--wait", "1h"}, {.daemon = Always(Ok(R"({"jobs":[]})"))});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("it is being stopped"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("within 1h")));
}

TEST(LeaseVerbTest, EndsOfLeasesAreSentToTheirToken) {
  const auto daemon = Always(Ok(JobToJson(SomeJob())));
  const Outcome nack =
      Ctl({"nack", "42-3-1f", "--delay", "5m", "--error", "down"}, {.daemon = daemon});
  EXPECT_EQ(nack.requests.at(0).target, "/v1/leases/42-3-1f/nack");
  EXPECT_EQ(nack.requests.at(0).body, R"({"delay":"5m","error":"down"})");
  EXPECT_EQ(nack.out, "nacked job 42 in queue orders, due again in 30m\n");
  EXPECT_EQ(Ctl({"extend", "42-3-1f", "--lease", "5m"}, {.daemon = daemon}).requests.at(0).body,
            R"({"lease":"5m"})");
  const Outcome ack = Ctl({"ack", "42-3-1f", "43-3-20"}, {.daemon = daemon});
  EXPECT_EQ(ack.requests.at(1).target, "/v1/leases/43-3-20/ack");
  const Outcome stale = Ctl({"bury", "42-3-1f"},
                            {.daemon = Always(Problem(FailedPrecondition("over", "lease_lost")))});
  EXPECT_EQ(stale.code, 4);
}

// A queue with so many dead jobs and no end of scheduled ones, as the daemon kicks them.
FakeDaemon::Function QueueToKick(uint64_t dead) {
  return [dead](const Request& request) mutable {
    if (request.method == "GET") {
      return Ok(protocol::QueueToJson({.name = "orders", .scheduled = 9999, .dead = dead}));
    }
    const uint64_t wish = protocol::ParseKickRequest(request.body).value();
    const uint64_t kicked = dead > 0 ? std::min(dead, wish) : wish;
    dead -= std::min(dead, kicked);
    return Ok(protocol::KickedToJson(kicked));
  };
}

TEST(KickVerbTest, AsksAgainUntilTheNumberIsReachedOrNoneIsLeft) {
  const Outcome outcome =
      Ctl({"kick", "--queue", "orders", "--count", "2500"}, {.daemon = QueueToKick(0)});
  EXPECT_EQ(outcome.out, "kicked 2500 jobs in queue orders\n");
  EXPECT_EQ(outcome.requests.size(), 6U);
  EXPECT_EQ(outcome.requests.at(1).target, "/v1/queues/orders/kick");
  EXPECT_EQ(outcome.requests.at(5).body, R"({"count":500})");
}

// Two full steps of the daemon: the third would take the scheduled ones.
TEST(KickVerbTest, BegunWithTheDeadItEndsWithThem) {
  const auto out_with = [](uint64_t dead) {
    return Ctl({"kick", "--queue", "orders", "--count", "5000"}, {.daemon = QueueToKick(dead)}).out;
  };
  EXPECT_EQ(out_with(2000), "kicked 2000 jobs in queue orders\n");
  EXPECT_EQ(out_with(2500), "kicked 2500 jobs in queue orders\n");
}

TEST(PauseVerbTest, SaysHowLong) {
  protocol::QueueCounts orders{.name = "orders", .ready = 2, .paused = true};
  orders.pause_left = Millis(600'000);
  const Outcome outcome = Ctl({"pause", "orders", "--for", "10m"},
                              {.daemon = Always(Ok(protocol::QueueToJson(orders)))});
  EXPECT_EQ(outcome.requests.at(0).body, R"({"for":"10m"})");
  EXPECT_EQ(outcome.out, "queue orders is paused for 10m: 2 ready, 0 leased, 0 scheduled\n");
}

TEST(PauseVerbTest, QuietTakesTheWordsAndLeavesTheJson) {
  const auto daemon = Always(Ok(protocol::QueueToJson({.name = "orders"})));
  EXPECT_EQ(Ctl({"pause", "orders", "-q"}, {.daemon = daemon}).out, "");
  EXPECT_EQ(Ctl({"resume", "orders", "-q", "-o", "json"}, {.daemon = daemon}).out,
            protocol::QueueToJson({.name = "orders"}) + "\n");
  EXPECT_EQ(Ctl({"kick", "--queue", "orders", "--count", "5", "-q", "-o", "json"},
                {.daemon = QueueToKick(2)})
                .out,
            protocol::KickedToJson(2) + "\n");
}

TEST(QueuesVerbTest, NamesEveryCap) {
  const protocol::QueueCounts mail{
      .name = "mail", .concurrency = 4, .max_jobs = 1000, .rate = "100/m", .burst = 20};
  const protocol::QueueCounts quota{.name = "quota", .max_jobs = 9};
  EXPECT_THAT(
      Ctl({"queues"}, {.daemon = Always(Ok(protocol::QueuesToJson({mail, quota})))}).out,
      AllOf(HasSubstr("  4 leased, 100/m, 20 at once, 1000 stored\n"), HasSubstr("  9 stored\n")));
}

TEST(QueuesVerbTest, PrintsCountsAndTakesAName) {
  const protocol::QueueCounts orders{
      .name = "orders", .scheduled = 1, .ready = 2, .leased = 3, .dead = 4};
  EXPECT_EQ(Ctl({"queues"}, {.daemon = Always(Ok(protocol::QueuesToJson({orders})))}).out,
            "QUEUE   SCHEDULED  READY  LEASED  DEAD  PAUSED  CAPS\n"
            "orders  1          2      3       4     no      -\n");
  const Outcome one = Ctl({"queues", "orders", "-o", "json"},
                          {.daemon = Always(Ok(protocol::QueueToJson(orders)))});
  EXPECT_EQ(one.requests.at(0).target, "/v1/queues/orders");
  EXPECT_EQ(one.out, protocol::QueueToJson(orders) + "\n");
}

TEST(StatsVerbTest, PrintsNamesAndValues) {
  const auto daemon = Always(Ok(R"({"scheduled":7,"next_due":"2027-01-01T09:00:00.000Z"})"));
  EXPECT_EQ(Ctl({"stats"}, {.daemon = daemon}).out,
            "COUNTER    VALUE\n"
            "scheduled  7\n"
            "next_due   2027-01-01T09:00:00.000Z\n");
}

// A list with payloads in which job 2 has none; by itself it answers `alone`.
FakeDaemon::Function WithoutPayloadOf2(const Status& alone) {
  return WhereNothingMoves([alone](const Request& request) {
    if (request.target == "/v1/jobs/2") {
      return Problem(alone);
    }
    JobView second = SomeJob(2);
    second.payload.reset();
    return request.target.find("cursor=") != std::string::npos
               ? Ok(JobPageToJson({.jobs = {SomeJob(3)}, .next_cursor = ""}))
               : Ok(JobPageToJson({.jobs = {SomeJob(1), second}, .next_cursor = "c/1"}));
  });
}

TEST(ExportVerbTest, WritesImportableLinesAndAsksOnceAPage) {
  const Outcome outcome = Ctl({"export"}, {.daemon = WhereNothingMoves(ThreePages)});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(
      outcome.out,
      JobToJson(SomeJob(1)) + "\n" + JobToJson(SomeJob(2)) + "\n" + JobToJson(SomeJob(3)) + "\n");
  ASSERT_EQ(outcome.requests.size(), 3U + 4U) << "the pages; the time, moves twice, and pauses";
  EXPECT_EQ(outcome.requests[2].target, "/v1/jobs?payload=true&limit=1000");
}

TEST(ExportVerbTest, SkipsWhatHasGone) {
  const Outcome outcome = Ctl({"export"}, {.daemon = WithoutPayloadOf2(NotFound("gone"))});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, JobToJson(SomeJob(1)) + "\n" + JobToJson(SomeJob(3)) + "\n");
}

TEST(ExportVerbTest, ShowsProgressUnlessTheJobsThemselvesGoToTheTerminal) {
  const auto err_of = [](bool out_is_terminal) {
    return Ctl({"export"},
               {.daemon = WhereNothingMoves(ThreePages),
                .traits = {.out_is_terminal = out_is_terminal, .err_is_terminal = true},
                .call_takes = Millis(1000)})
        .err;
  };
  EXPECT_THAT(err_of(false), HasSubstr("\x1b[K3 jobs "));
  EXPECT_EQ(err_of(true), "exported 3 jobs\n");
}

TEST(ExportVerbTest, NamesADamagedJobAndWritesTheOthers) {
  const Status damaged = DataLoss("job 2: record checksum does not match", "damaged");
  const Outcome outcome = Ctl({"export"}, {.daemon = WithoutPayloadOf2(damaged)});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, JobToJson(SomeJob(1)) + "\n" + JobToJson(SomeJob(3)) + "\n");
  EXPECT_THAT(outcome.err, HasSubstr("job 2: record checksum"));
  EXPECT_THAT(outcome.err, HasSubstr("exported 2 jobs and left out 1 damaged ones"));
  EXPECT_THAT(Ctl({"export", "-o", "json"}, {.daemon = WithoutPayloadOf2(damaged)}).err,
              ::testing::MatchesRegex("\\{\"type\"[^\n]*job 2: record checksum[^\n]*\n"));
}

TEST(ExportVerbTest, AFailureSaysHowFarItCame) {
  const Status away = Unavailable("nobody there", "unreachable");
  EXPECT_EQ(Ctl({"export"}, {.daemon = WithoutPayloadOf2(away)}).err,
            "delayctl: nobody there (export stopped after 1 job)\n");
  EXPECT_THAT(Ctl({"export", "-o", "json"}, {.daemon = WithoutPayloadOf2(away)}).err,
              ::testing::MatchesRegex("\\{\"type\"[^\n]*stopped after 1 job[^\n]*\n"));
  const auto stranger = [](const Request& request) {
    return request.target == "/v1/jobs/2" ? Ok("<html>", 404) : WithoutPayloadOf2({})(request);
  };
  EXPECT_EQ(Ctl({"export"}, {.daemon = stranger}).code, 5);
}

}  // namespace
}  // namespace delayd::cli
