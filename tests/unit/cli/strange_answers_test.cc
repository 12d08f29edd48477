// Answers that no delayd gives, and answers that do not come.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A backup to a wrong port must not be good for ever.
TEST(StrangeAnswersTest, AnObjectOfAnotherServerIsNoAnswer) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> missing = {
      {{"ping"}, "version"},
      {{"enqueue", "x"}, "id"},
      {{"show", "5"}, "id"},
      {{"cancel", "5"}, "id"},
      {{"ack", "1-1-1"}, "id"},
      {{"cancel", "--queue", "q", "--yes"}, "matched"},
      {{"kick", "--queue", "q", "--count", "1"}, "name"},
      {{"lease"}, "jobs"},
      {{"export"}, "scheduled"},
      {{"queues"}, "queues"},
      {{"pause", "q"}, "name"},
      {{"stats"}, "scheduled"},
      {{"drain"}, "scheduled"},
      {{"clock", "accept"}, "scheduled"},
      {{"forecast"}, "scheduled"},
      {{"verify"}, "whole"},
      {{"backup", "/var/backups/delayd-1"}, "dir"}};
  for (const auto& [args, member] : missing) {
    const Outcome outcome =
        Ctl(args, {.daemon = [](const Request&) { return Ok(R"({"status":"ok"})"); }});
    EXPECT_EQ(outcome.code, 1) << args.front();
    EXPECT_THAT(outcome.err, HasSubstr("member '" + member + "': is missing")) << args.front();
  }
}

TEST(StrangeAnswersTest, AnAnswerThatIsNoneOfOursIsSaidToBeSo) {
  const auto run = [](const std::string& verb, const std::string& answer, int status) {
    return Ctl({verb, "1"}, {.daemon = [&](const Request&) { return Ok(answer, status); }});
  };
  EXPECT_THAT(run("show", "{}", 200).err,
              HasSubstr("check that it is delayd that answers, of the same version"));
  EXPECT_EQ(run("show", "{}", 200).code, 1);
  for (const int status : {200, 302, 404, 409}) {
    const Outcome read = run("show", "<html>", status);
    EXPECT_EQ(read.code, 5) << status;
    EXPECT_THAT(read.err, HasSubstr(", and not from delayd: a proxy, or another server"));
    EXPECT_EQ(run("cancel", "<html>", status).code, 1) << status;
  }
  EXPECT_EQ(run("cancel", "<html>", 403).code, 7);
  const auto moved = [](const Request&) {
    return Answer(
        protocol::HttpResponse{.status = 308, .location = "https://jobs.example/v1/jobs/1"});
  };
  EXPECT_THAT(Ctl({"show", "1"}, {.daemon = moved}).err,
              HasSubstr("it redirects to 'https://jobs.example/v1/jobs/1'"));
  const auto nobody = [](const Request&) { return Answer(Unavailable("nobody")); };
  EXPECT_EQ(Ctl({"ping"}, {.daemon = nobody}).code, 5);
}

TEST(StrangeAnswersTest, WhoAsksForJsonIsToldTheDetailsOfARefusal) {
  Status leased = FailedPrecondition("job 1 is leased", "leased");
  leased.AddDetail("lease_expires", "2027-01-01T09:00:00.000Z");
  const auto refuse = [&](const Request&) { return Problem(leased); };
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"cancel", "1", "-o", "json"},
        {"enqueue", "--key", "k", "x", "-o", "json"}}) {
    EXPECT_THAT(Ctl(args, {.daemon = refuse}).err,
                HasSubstr(R"("lease_expires":"2027-01-01T09:00:00.000Z"})"));
  }
}

TEST(StrangeAnswersTest, OfAChangeWhoseAnswerIsNotUnderstoodNobodyKnowsWhetherItWasMade) {
  const auto said = [](const std::vector<std::string>& args, const std::string& answer) {
    return Ctl(args, {.daemon = [&](const Request&) { return Ok(answer); }}).err;
  };
  const auto warns = HasSubstr("the request may have been carried out: look before you repeat it");
  EXPECT_THAT(said({"enqueue", "x"}, "<html>"), warns);
  EXPECT_THAT(said({"cancel", "5"}, "<html>"), warns);
  EXPECT_THAT(said({"cancel", "5"}, "{}"), warns);
  EXPECT_THAT(said({"show", "5"}, "<html>"), Not(warns));
}

// Any program may answer in the place of one that is away.
TEST(StrangeAnswersTest, NoAnswerObeysAServerThatWritesControls) {
  JobView job = SomeJob();
  job.queue = "q\x1b[2J";
  job.state = JobState::kFinished;
  job.outcome = "acked\x1b[2J";
  const std::vector<std::vector<std::string>> of_job = {{"cancel", "1"},
                                                        {"reschedule", "1", "--in", "1s"},
                                                        {"touch", "1"},
                                                        {"kick", "1"},
                                                        {"run", "1"},
                                                        {"show", "1"},
                                                        {"wait", "1"},
                                                        {"ack", "1-1-1"}};
  for (const std::vector<std::string>& args : of_job) {
    const Outcome outcome =
        Ctl(args, {.daemon = [&](const Request&) { return Ok(protocol::JobToJson(job)); }});
    EXPECT_EQ(outcome.code, 0) << args.front() << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("q\\x1b[2J")) << args.front();
    EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b"))) << args.front();
  }
  const protocol::QueueCounts queue{.name = job.queue};
  const std::vector<std::vector<std::string>> of_queue = {
      {"pause", "q"}, {"resume", "q"}, {"queues", "q"}, {"queues", "q", "-q"}};
  for (const std::vector<std::string>& args : of_queue) {
    const Outcome outcome =
        Ctl(args, {.daemon = [&](const Request&) { return Ok(protocol::QueueToJson(queue)); }});
    EXPECT_THAT(outcome.out, HasSubstr("q\\x1b[2J")) << args.front();
    EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b"))) << args.front();
  }
}

// Each would take its time.
TEST(StrangeAnswersTest, ADaemonThatHangsIsAskedOnceForManyJobs) {
  for (const Status& hangs :
       {Unknown("no answer", "timed_out"), DeadlineExceeded("no answer", "timed_out")}) {
    int answered = 0;
    const auto daemon = [&](const Request&) {
      return ++answered < 3 ? Ok(protocol::JobToJson(SomeJob())) : Answer(hangs);
    };
    const Outcome outcome = Ctl({"cancel", "1", "2", "3", "4"}, {.daemon = daemon});
    EXPECT_EQ(outcome.code, 1) << "two were cancelled";
    EXPECT_EQ(outcome.requests.size(), 3U);
    EXPECT_EQ(outcome.err, "delayctl: no answer (job 3; not tried: 4)\n");
  }
}

// The first `done` calls succeed, then comes the failure.
Outcome CtlUntilOutage(const std::vector<std::string>& args, int done, const Status& failure) {
  const auto daemon = [done, failure](const Request&) mutable {
    return done-- > 0 ? Ok(protocol::JobToJson(SomeJob())) : Answer(failure);
  };
  return Ctl(args, {.daemon = daemon});
}

// A script may take exit code 5 for "nothing happened".
TEST(StrangeAnswersTest, AnOutageAfterAJobThatWasDoneIsPartOnly) {
  const Status away = Unavailable("nobody", "unreachable");
  for (const char* verb : {"cancel", "kick", "touch", "run"}) {
    EXPECT_EQ(CtlUntilOutage({verb, "1", "2", "3"}, 1, away).code, 1) << verb;
    EXPECT_EQ(CtlUntilOutage({verb, "1", "2", "3"}, 0, away).code, 5) << verb;
    EXPECT_EQ(CtlUntilOutage({verb, "1"}, 0, away).err, "delayctl: nobody\n") << verb;
  }
  EXPECT_EQ(CtlUntilOutage({"ack", "7-1-a", "8-1-b", "9-1-c"}, 1, away).err,
            "delayctl: nobody (job 8; not tried: 9)\n");
  EXPECT_THAT(CtlUntilOutage({"cancel", "1", "2", "3", "4", "-o", "json"}, 1, away).err,
              HasSubstr(R"("job":"2","not_tried":"3 4"})"));
}

TEST(StrangeAnswersTest, ALostAnswerSaysOfWhichJob) {
  const Status lost = Unknown("no answer; it may have been done", "outcome_unknown");
  const Outcome outcome = CtlUntilOutage({"cancel", "1", "2", "3"}, 1, lost);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err,
            "delayctl: no answer; it may have been done (job 2)\n"
            "delayctl: no answer; it may have been done (job 3)\n");
}

}  // namespace
}  // namespace delayd::cli
