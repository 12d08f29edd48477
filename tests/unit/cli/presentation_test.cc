// How things are shown and told: times in the local zone, wide and cut tables, where settings come
// from, a job that had the key.
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/job_json.h"
#include "protocol/stats_json.h"
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

TEST(PresentationTest, TablesShowLocalTimesAndUtcOnDemand) {
  EXPECT_THAT(Ctl({"list"}, WithOneJob()).out, HasSubstr("2027-01-01T18:30:00.000+09:00"));
  EXPECT_THAT(Ctl({"list", "--utc"}, WithOneJob()).out, HasSubstr("2027-01-01T09:30:00.000Z"));
  EXPECT_THAT(Ctl({"list", "-o", "json"}, WithOneJob()).out, HasSubstr("2027-01-01T09:30:00.000Z"));
}

TEST(PresentationTest, ALongKeyDoesNotWidenTheRowsOfAListOnATerminal) {
  const std::string key(200, 'k');
  const auto list = [&](std::vector<std::string> args, Console::Traits traits) {
    args.insert(args.begin(), "list");
    const auto daemon = [&](const Request&) {
      JobView job = SomeJob();
      job.key = key;
      return Ok("{\"jobs\":[" + protocol::JobToJson(job) + "," + protocol::JobToJson(SomeJob(7)) +
                "]}");
    };
    return Ctl(args, {.daemon = daemon, .traits = traits}).out;
  };
  Console::Traits wide = kTerminal;
  wide.width = 120;
  EXPECT_THAT(list({}, wide), AllOf(HasSubstr("kkk...  "), Not(HasSubstr(key))));
  EXPECT_THAT(list({}, wide), HasSubstr("  order:1001  "));
  // On a narrow one names of the usual length stay whole.
  EXPECT_THAT(list({}, kTerminal),
              AllOf(HasSubstr("  order:1001  "), HasSubstr(" " + std::string(29, 'k') + "...  ")));
  EXPECT_THAT(list({"-o", "wide"}, wide), HasSubstr(key));
  EXPECT_THAT(list({"-o", "jsonl"}, wide), HasSubstr(key));
  EXPECT_THAT(list({}, {}), HasSubstr(key)) << "a program may read it";
}

TEST(PresentationTest, ALongKeyDoesNotWidenTheRowsOfLeasesOnATerminal) {
  const std::string key(200, 'k');
  const auto lease = [&](std::vector<std::string> args, Console::Traits traits) {
    args.insert(args.begin(), {"lease", "-n", "2"});
    const auto daemon = [&](const Request&) {
      JobView job = SomeJob();
      job.key = key;
      job.lease_token = LeaseToken{job.id, 1, 2};
      return Ok(protocol::JobPageToJson({.jobs = {job, SomeJob(7)}, .next_cursor = ""}));
    };
    return Ctl(args, {.daemon = daemon, .traits = traits}).out;
  };
  EXPECT_THAT(lease({}, kTerminal),
              AllOf(HasSubstr("  order:1001  "), HasSubstr("kkk...  "), Not(HasSubstr(key))));
  EXPECT_THAT(lease({"-o", "wide"}, kTerminal), HasSubstr(key));
  EXPECT_THAT(lease({}, {}), HasSubstr(key)) << "a program may read it";
}

TEST(PresentationTest, ALongNameDoesNotWidenTheRowsOfQueuesOnATerminal) {
  const std::string name(200, 'q');
  const auto queues = [&](std::vector<std::string> args, Console::Traits traits) {
    args.insert(args.begin(), "queues");
    const auto daemon = [&](const Request&) {
      return Ok(protocol::QueuesToJson({{name, 5, 2}, {"mail", 4, 1}}));
    };
    return Ctl(args, {.daemon = daemon, .traits = traits}).out;
  };
  EXPECT_THAT(queues({}, kTerminal), AllOf(HasSubstr("qqq...  5 "), HasSubstr("mail  ")));
  std::istringstream lines(queues({}, kTerminal));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U);
  }
  EXPECT_THAT(queues({"-o", "wide"}, kTerminal), HasSubstr(name));
  EXPECT_THAT(queues({"-o", "json"}, kTerminal), HasSubstr(name));
  EXPECT_THAT(queues({"-q"}, kTerminal), HasSubstr(name));
  EXPECT_THAT(queues({}, {}), HasSubstr(name)) << "a program may read it";
}

TEST(PresentationTest, SentencesShowTheTimesThatTablesShow) {
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

TEST(PresentationTest, TimesAreReadInTheLocalZone) {
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

TEST(PresentationTest, ATimeInAZoneThatIsNotKnownIsAWrongUsageUnlessItIsSaidToBeUtc) {
  const auto daemon = [](const Request&) { return Ok(protocol::JobToJson(SomeJob())); };
  const auto at = [&](const std::vector<std::string>& args) {
    return Ctl(args, {.daemon = daemon, .unknown_zone = "CST-8"}).code;
  };
  EXPECT_EQ(at({"enqueue", "--at", "2027-01-01 09:00", "x"}), 2);
  EXPECT_EQ(at({"enqueue", "--at", "2027-01-01 09:00", "--utc", "x"}), 0);
  EXPECT_EQ(at({"enqueue", "--at", "2027-01-01T09:00:00Z", "x"}), 0);
}

TEST(PresentationTest, WideShowsMoreColumnsAndEscapesThem) {
  const Outcome wide = Ctl({"list", "-o", "wide"}, WithOneJob());
  EXPECT_THAT(wide.out,
              AllOf(HasSubstr("PRIORITY"),
                    HasSubstr("LAST ERROR"),
                    HasSubstr("exit code 1:\\x1b[2J no such order"),
                    Not(HasSubstr("\x1b"))));
  EXPECT_THAT(Ctl({"list"}, WithOneJob()).out, Not(HasSubstr("PRIORITY")));
}

TEST(PresentationTest, ThatAListIsCutIsToldToProgramsToo) {
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
  EXPECT_EQ(told({}), "there are more; give --limit N or --all\n");
  EXPECT_EQ(told({"--limit", "100"}), "");
  EXPECT_EQ(told({"-q", "--limit", "100"}), "");
  EXPECT_EQ(told({"-o", "json"}), "") << "the document has next_cursor";
}

TEST(PresentationTest, AListThatEndsBetweenTwoQueuesSaysThatThereIsMore) {
  const auto listed = [](const char* limit) {
    const auto one_in_each = [](const Request& request) {
      return request.target.starts_with("/v1/queues")
                 ? Ok(protocol::QueuesToJson({{.name = "a", .dead = 1}, {.name = "b", .dead = 1}}))
                 : Ok(protocol::JobPageToJson({{SomeJob()}, ""}));
    };
    return Ctl({"list", "--state", "dead", "-o", "json", "--limit", limit}, {.daemon = one_in_each})
        .out;
  };
  EXPECT_THAT(listed("1"), HasSubstr(R"(],"next_queue":"b","next_cursor":"0-0"})"));
  EXPECT_THAT(listed("2"), Not(HasSubstr("next_")));
}

TEST(PresentationTest, AListOfAllDeadJobsNamesTheQueueThatItsCursorIsAbout) {
  const auto two_in_one = [](const Request& request) {
    return request.target.starts_with("/v1/queues")
               ? Ok(protocol::QueuesToJson({{.name = "a", .dead = 2}}))
               : Ok(protocol::JobPageToJson({{SomeJob()}, "1-2a"}));
  };
  std::vector<std::string> args = {"list", "--state", "dead", "-o", "json", "--limit", "1"};
  EXPECT_THAT(Ctl(args, {.daemon = two_in_one}).out,
              HasSubstr(R"(],"next_queue":"a","next_cursor":"1-2a"})"));
  args.insert(args.end(), {"--queue", "a"});
  EXPECT_THAT(Ctl(args, {.daemon = two_in_one}).out, HasSubstr(R"(],"next_cursor":"1-2a"})"));
}

TEST(PresentationTest, ConfigTellsWhereEachSettingComesFrom) {
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

TEST(PresentationTest, AJobThatHadTheKeyAndWillNotFireIsToldOffATerminalToo) {
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
  EXPECT_THAT(enqueue(JobState::kFinished, "acked", "-qojson").err,
              HasSubstr(R"("outcome":"acked","finished":"2027-01-01T09:00:00.000Z"})"));
  EXPECT_EQ(enqueue(JobState::kScheduled, "", "--quiet").err, "");
  EXPECT_EQ(enqueue(JobState::kScheduled, "", "--utc").err, "");
}

}  // namespace
}  // namespace delayd::cli
