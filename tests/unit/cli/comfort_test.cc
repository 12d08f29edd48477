// What people get beside the verbs' own work: zones, wide tables, doctor, config.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/job_json.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

cctz::time_zone Tokyo() {
  cctz::time_zone zone;
  EXPECT_TRUE(cctz::load_time_zone("Asia/Tokyo", &zone));
  return zone;
}

CtlOptions WithOneJob() {
  return {.daemon =
              [](const Request&) {
                JobView job = SomeJob();
                job.last_error = "exit code 1:\x1b[2J no such order";
                return Ok("{\"jobs\":[" + protocol::JobToJson(job) + "]}");
              },
          .zone = Tokyo()};
}

TEST(ComfortTest, TablesShowLocalTimesAndUtcOnDemand) {
  EXPECT_THAT(Ctl({"list"}, WithOneJob()).out, HasSubstr("2027-01-01T18:30:00.000+09:00"));
  EXPECT_THAT(Ctl({"list", "--utc"}, WithOneJob()).out, HasSubstr("2027-01-01T09:30:00.000Z"));
  EXPECT_THAT(Ctl({"list", "-o", "json"}, WithOneJob()).out, HasSubstr("2027-01-01T09:30:00.000Z"));
}

TEST(ComfortTest, SentencesShowTheTimesThatTablesShow) {
  const auto said = [](std::vector<std::string> args) {
    return Ctl(args,
               {.daemon =
                    [](const Request& request) {
                      if (request.target == "/readyz") {
                        return Ok(R"({"status":"ready","version":"9.9.9"})");
                      }
                      return Ok(request.target == "/v1/stats"
                                    ? R"({"scheduled":1,"next_due":"2027-01-01T09:30:00.000Z"})"
                                    : protocol::JobToJson(SomeJob()));
                    },
                .zone = Tokyo()})
        .out;
  };
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"touch", "42"}, {"reschedule", "42", "--in", "1h"}, {"status"}, {"show", "42"}}) {
    EXPECT_THAT(said(args), HasSubstr("2027-01-01T18:30:00.000+09:00")) << args[0];
    std::vector<std::string> utc = args;
    utc.emplace_back("--utc");
    EXPECT_THAT(said(utc), HasSubstr("2027-01-01T09:30:00.000Z")) << args[0];
  }
}

TEST(ComfortTest, TimesAreReadInTheLocalZone) {
  const auto due_of = [](std::vector<std::string> args) {
    const Outcome outcome = Ctl(args, {.zone = Tokyo()});
    return outcome.requests.empty() ? outcome.err : outcome.requests.front().body;
  };
  // It is 18:00 in Tokyo.
  EXPECT_THAT(due_of({"enqueue", "--at", "tomorrow 09:00", "x"}),
              HasSubstr("2027-01-02T00:00:00.000Z"));
  EXPECT_THAT(due_of({"enqueue", "--utc", "--at", "tomorrow 09:00", "x"}),
              HasSubstr("2027-01-02T09:00:00.000Z"));
  EXPECT_THAT(due_of({"enqueue", "--at", "18:30", "x"}), HasSubstr("2027-01-01T09:30:00.000Z"));
  EXPECT_THAT(due_of({"enqueue", "--at", "18:30", "--", "--utc"}),
              HasSubstr("2027-01-01T09:30:00.000Z"));
  const Outcome filter = Ctl({"list", "--due-before", "tomorrow 09:00"}, WithOneJob());
  EXPECT_THAT(filter.requests.front().target, HasSubstr("due_before=2027-01-02T00%3A00%3A00.000Z"));
}

TEST(ComfortTest, WideShowsMoreColumnsAndEscapesThem) {
  const Outcome wide = Ctl({"list", "-o", "wide"}, WithOneJob());
  EXPECT_THAT(wide.out,
              AllOf(HasSubstr("PRIORITY"),
                    HasSubstr("LAST ERROR"),
                    HasSubstr("exit code 1:\\x1b[2J no such order"),
                    Not(HasSubstr("\x1b"))));
  EXPECT_THAT(Ctl({"list"}, WithOneJob()).out, Not(HasSubstr("PRIORITY")));
}

TEST(ComfortTest, ThatAListIsCutIsToldToProgramsToo) {
  const auto told = [](std::vector<std::string> args) {
    const auto full = [](const Request&) {
      return Ok(protocol::JobPageToJson({std::vector<JobView>(100, SomeJob()), "1-2a"}));
    };
    args.insert(args.begin(), "list");
    return Ctl(args, {.daemon = full}).err;
  };
  EXPECT_EQ(told({"-q"}),
            "delayctl: there are more jobs, and only the first 100 are listed; give --limit N or "
            "--all, or a filter\n");
  EXPECT_THAT(told({"-o", "jsonl"}), AllOf(StartsWith("{\"type\""), HasSubstr("first 100 are")));
  EXPECT_EQ(told({"-q", "--limit", "100"}), "");
  EXPECT_EQ(told({"-o", "json"}), "") << "the document has next_cursor";
}

TEST(ComfortTest, ConfigTellsWhereEachSettingComesFrom) {
  EXPECT_THAT(Ctl({"config"}, {.environment_server = "unix:/x.sock"}).out,
              AllOf(HasSubstr("unix:/x.sock"), HasSubstr("DELAYCTL_SERVER")));
  EXPECT_THAT(Ctl({"config", "-s", "unix:/y.sock", "--timeout", "9s"}).out,
              AllOf(HasSubstr("unix:/y.sock"), HasSubstr("--server"), HasSubstr("--timeout")));
  EXPECT_THAT(Ctl({"config", "--token-file", "/t", "--ca-file", "/c", "-o", "jsonl"}).out,
              AllOf(HasSubstr(R"("value":"/t","from":"--token-file")"),
                    HasSubstr(R"("value":"/c","from":"--ca-file")")));
  EXPECT_THAT(Ctl({"config", "-o", "jsonl"}, {.environment_token_file = "/env/token"}).out,
              HasSubstr(R"("value":"/env/token","from":"DELAYCTL_TOKEN_FILE")"));
  EXPECT_THAT(Ctl({"config", "-o", "jsonl"}).out, StartsWith("{\"setting\":\"server\""));
  const std::string document = Ctl({"config", "-o", "json"}).out;
  EXPECT_THAT(document, StartsWith(R"({"settings":[{"setting":"server")"));
  EXPECT_THAT(document, EndsWith("}]}\n"));
  EXPECT_THAT(Ctl({"config", "chek"}).err, HasSubstr("'chek' is unknown"));
}

Answer Healthy(const Request& request) {
  if (request.target == "/readyz") {
    return Ok(R"({"status":"ready","version":"9.9.9"})");
  }
  if (request.target.starts_with("/v1/queues")) {
    return Ok(R"({"queues":[{"name":"orders","ready":3}]})");
  }
  if (request.target.starts_with("/v1/jobs")) {
    return Ok(protocol::JobPageToJson({.jobs = {SomeJob()}, .next_cursor = ""}));
  }
  return Ok(R"({"scheduled":1,"ready":3,"leased":0,"dead":2,"waiting":0,"damaged":0})");
}

TEST(ComfortTest, DoctorNamesEachTroubleWithItsCure) {
  const Outcome outcome =
      Ctl({"doctor", "-s", "unix:/nonexistent/d.sock", "--data-dir", "/"}, {.daemon = Healthy});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("FAIL  socket   /nonexistent/d.sock"),
                    HasSubstr("do: start the daemon"),
                    HasSubstr("warn  version  delayd is 9.9.9, delayctl is"),
                    HasSubstr("no worker asks for them"),
                    HasSubstr("disk     /: ")));
}

TEST(ComfortTest, DoctorLooksAtTheDirectoryThatIsNamedWhateverTheAddress) {
  EXPECT_THAT(
      Ctl({"doctor", "-s", "http://127.0.0.1:1", "--data-dir", "/"}, {.daemon = Healthy}).out,
      HasSubstr("disk     /: "));
  EXPECT_THAT(Ctl({"doctor", "-s", "http://127.0.0.1:1"}, {.daemon = Healthy}).out,
              Not(HasSubstr("disk     ")));
}

TEST(ComfortTest, DoctorJudgesTheDiskByTheReserveOfTheDaemon) {
  const auto doctor = [](const std::string& reserve) {
    return Ctl({"doctor", "-s", "http://127.0.0.1:1", "--data-dir", "/"},
               {.daemon = [&](const Request& request) -> Answer {
                 return request.target == "/metrics"
                            ? Ok("# TYPE\ndelayd_disk_reserve_bytes " + reserve + "\n")
                            : Healthy(request);
               }});
  };
  const Outcome full = doctor("18000000000000000000");
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.out, HasSubstr("less than storage.reserve: no new jobs are taken"));
  EXPECT_THAT(doctor("0").out, Not(HasSubstr("FAIL")));
}

// Only what the daemon tells of itself is answered then.
TEST(ComfortTest, DoctorNamesADiskThatHangs) {
  const auto doctor = [](const std::string& seconds) {
    return Ctl({"doctor", "-s", "http://127.0.0.1:1"},
               {.daemon = [&](const Request& request) -> Answer {
                 if (request.target == "/v1/stats") {
                   return Unavailable("no answer within 5s");
                 }
                 return request.target == "/metrics"
                            ? Ok("# TYPE\ndelayd_commit_running_seconds " + seconds + "\n")
                            : Healthy(request);
               }});
  };
  EXPECT_THAT(doctor("7.25").out,
              HasSubstr("no answer within 5s; the disk hangs: a commit has taken 7s so far"));
  EXPECT_THAT(doctor("0").out, Not(HasSubstr("hangs")));
}

TEST(ComfortTest, DoctorPassesOverWarnings) {
  const Outcome outcome =
      Ctl({"doctor", "-s", "http://127.0.0.1:1", "-o", "jsonl"}, {.daemon = Healthy});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr(R"({"check":"version","result":"warn")"));
}

TEST(ComfortTest, DoctorsJsonIsOneDocument) {
  const std::string document =
      Ctl({"doctor", "-s", "http://127.0.0.1:1", "-o", "json"}, {.daemon = Healthy}).out;
  EXPECT_THAT(document, StartsWith(R"({"checks":[{"check":)"));
  EXPECT_THAT(document, EndsWith("}]}\n"));
  EXPECT_EQ(std::ranges::count(document, '\n'), 1);
}

// 503, with the reasons.
Answer OutOfRoom(const Request& request) {
  Answer answer = Healthy(request);
  if (request.target == "/readyz" && answer.ok()) {
    answer->status = 503;
    answer->body =
        R"({"status":"not ready","version":"9.9.9","reasons":[{"code":"disk_full","detail":"only 3 MiB are left; make room"}]})";
  }
  return answer;
}

TEST(ComfortTest, ADaemonThatIsNotReadyIsShownWithItsReasons) {
  const Outcome status = Ctl({"status"}, {.daemon = OutOfRoom});
  EXPECT_EQ(status.code, 5);
  EXPECT_THAT(status.out, HasSubstr("not ready"));
  EXPECT_THAT(status.out, HasSubstr("disk_full: only 3 MiB are left; make room"));
  EXPECT_THAT(status.out, HasSubstr("3 ready")) << "what it holds is told all the same";
  EXPECT_THAT(status.err, HasSubstr("make room"));
  EXPECT_THAT(Ctl({"status", "-o", "json"}, {.daemon = OutOfRoom}).out,
              HasSubstr(R"("why":"disk_full: only 3 MiB are left; make room")"));
  const Outcome doctor = Ctl({"doctor", "-s", "http://127.0.0.1:1"}, {.daemon = OutOfRoom});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("FAIL  daemon   answers: not ready; disk_full: only 3 MiB"));
}

TEST(ComfortTest, DoctorFailsWithoutADaemon) {
  const Outcome outcome = Ctl(
      {"doctor", "-s", "http://127.0.0.1:1"},
      {.daemon = [](const Request&) -> Answer { return Unavailable("nobody answers; start it"); }});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("FAIL  daemon   nobody answers; start it"));
}

TEST(ComfortTest, ATimeInAZoneThatIsNotKnownIsAWrongUsageUnlessItIsSaidToBeUtc) {
  const auto daemon = [](const Request&) { return Ok(protocol::JobToJson(SomeJob())); };
  const auto at = [&](const std::vector<std::string>& args) {
    return Ctl(args, {.daemon = daemon, .unknown_zone = "CST-8"}).code;
  };
  EXPECT_EQ(at({"enqueue", "--at", "2027-01-01 09:00", "x"}), 2);
  EXPECT_EQ(at({"enqueue", "--at", "2027-01-01 09:00", "--utc", "x"}), 0);
  EXPECT_EQ(at({"enqueue", "--at", "2027-01-01T09:00:00Z", "x"}), 0);
}

TEST(ComfortTest, AJobThatHadTheKeyAndWillNotFireIsToldOffATerminalToo) {
  const auto enqueue = [](JobState state, const std::string& outcome, const std::string& more) {
    JobView job = SomeJob();
    job.state = state;
    job.outcome = outcome;
    job.finished = WallFromMillis(kTestNow);
    return Ctl({"enqueue", "--key", "k", "x", more}, {.daemon = [job](const Request&) {
                 return Ok(protocol::EnqueuedToJson({job, true}));
               }});
  };
  for (const std::string outcome : {"acked", "cancelled"}) {
    const Outcome ended = enqueue(JobState::kFinished, outcome, "--utc");
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.out, "42\n");
    EXPECT_EQ(ended.err,
              "job 42 in queue orders had this key and was " + outcome +
                  " at 2027-01-01T09:00:00.000Z; nothing was enqueued; for a new job use "
                  "--on-conflict keep or replace, or another key\n");
  }
  const Outcome dead = enqueue(JobState::kDead, "", "--utc");
  EXPECT_EQ(dead.code, 0);
  EXPECT_EQ(dead.out, "42\n");
  EXPECT_THAT(dead.err, HasSubstr("has this key and is dead; nothing was enqueued; bring it back"));
  EXPECT_THAT(dead.err, HasSubstr("delayctl kick 42\n"));
  const Outcome quiet = enqueue(JobState::kFinished, "acked", "--quiet");
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.out, "42\n");
  EXPECT_THAT(quiet.err, HasSubstr("nothing was enqueued"));
  EXPECT_EQ(enqueue(JobState::kScheduled, "", "--quiet").err, "");
  EXPECT_EQ(enqueue(JobState::kScheduled, "", "--utc").err, "");
}

// A backup to a wrong port must not be good for ever.
TEST(ComfortTest, AnObjectOfAnotherServerIsNoAnswer) {
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

TEST(ComfortTest, AnAnswerThatIsNoneOfOursIsSaidToBeSo) {
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
  const auto nobody = [](const Request&) { return Answer(Unavailable("nobody")); };
  EXPECT_EQ(Ctl({"ping"}, {.daemon = nobody}).code, 5);
}

TEST(ComfortTest, OfAChangeWhoseAnswerIsNotUnderstoodNobodyKnowsWhetherItWasMade) {
  const auto said = [](const std::vector<std::string>& args, const std::string& answer) {
    return Ctl(args, {.daemon = [&](const Request&) { return Ok(answer); }}).err;
  };
  const auto warns = HasSubstr("the request may have been carried out: look before you repeat it");
  EXPECT_THAT(said({"enqueue", "x"}, "<html>"), warns);
  EXPECT_THAT(said({"cancel", "5"}, "<html>"), warns);
  EXPECT_THAT(said({"cancel", "5"}, "{}"), warns);
  EXPECT_THAT(said({"show", "5"}, "<html>"), Not(warns));
}

// Each would take its time.
TEST(ComfortTest, ADaemonThatHangsIsAskedOnceForManyJobs) {
  for (const Status& hangs :
       {Unknown("no answer", "timed_out"), DeadlineExceeded("no answer", "timed_out")}) {
    int answered = 0;
    const auto daemon = [&](const Request&) {
      return ++answered < 3 ? Ok(protocol::JobToJson(SomeJob())) : Answer(hangs);
    };
    const Outcome outcome = Ctl({"cancel", "1", "2", "3", "4"}, {.daemon = daemon});
    EXPECT_EQ(outcome.code, 6);
    EXPECT_EQ(outcome.requests.size(), 3U);
    EXPECT_EQ(outcome.err, "delayctl: no answer; 1 more was not tried\n");
  }
}

}  // namespace
}  // namespace delayd::cli
