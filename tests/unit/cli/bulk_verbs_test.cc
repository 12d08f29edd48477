// cancel, kick and reschedule of many jobs, and forecast.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/bulk_json.h"
#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using protocol::ChangedManyToJson;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// They tell no time; the answer is dated.
constexpr char kOlderStats[] = R"({"scheduled":0})";

// Two steps of jobs, the first with a cursor.
Answer TwoSteps(const Request& request) {
  if (request.target == "/v1/stats") {
    return Ok(kOlderStats);
  }
  if (request.method == "GET") {
    return Ok(protocol::JobPageToJson({.jobs = {SomeJob()}, .next_cursor = ""}));
  }
  const bool dry = request.body.find("dry_run") != std::string::npos;
  const bool second = request.body.find(R"("cursor":"1-2")") != std::string::npos;
  return Ok(ChangedManyToJson(
      {second ? 50U : 250U, dry ? 0U : (second ? 50U : 250U), second ? "" : "1-2"}));
}

TEST(CancelByFilterTest, FollowsTheCursorsAndSaysWhatItDid) {
  const Outcome outcome =
      Ctl({"cancel", "--queue", "orders", "--state", "scheduled", "--key-prefix", "o:", "--yes"},
          {.daemon = TwoSteps});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("cancelled 300 jobs in "));
  ASSERT_EQ(outcome.requests.size(), 2U);
  EXPECT_EQ(outcome.requests[0].target, "/v1/jobs:cancel");
  EXPECT_EQ(outcome.requests[0].body,
            R"({"filter":{"queue":"orders","state":"scheduled","key_prefix":"o:"},"limit":300})");
}

TEST(CancelByFilterTest, TimesFromNowAreOneMomentForAllSteps) {
  const Outcome outcome = Ctl({"cancel", "--due-before", "1h", "--yes"}, {.daemon = TwoSteps});
  for (const size_t step : {1U, 2U}) {
    EXPECT_THAT(outcome.requests.at(step).body,
                HasSubstr(R"("due_before":"2027-01-01T10:00:00.000Z")"));
  }
}

// With a clock that was an hour ahead it took what was due in two.
TEST(CancelByFilterTest, ADurationCountsFromTheDaemonsNow) {
  const auto asked = [](const std::string& due, const std::string& stats) {
    const Outcome outcome =
        Ctl({"cancel", "--due-before", due, "-y"},
            {.daemon =
                 [&](const Request& request) {
                   return request.target == "/v1/stats" ? Ok(stats) : TwoSteps(request);
                 },
             .daemon_ahead = -std::chrono::hours(1)});
    return outcome.requests.back().body;
  };
  const std::string told = R"({"now":"2027-01-01T08:00:00.250Z","scheduled":0})";
  for (const char* due : {"1h", "+1h", "now + 1h"}) {
    EXPECT_THAT(asked(due, told), HasSubstr(R"("due_before":"2027-01-01T09:00:00.250Z")")) << due;
  }
  EXPECT_THAT(asked("now", told), HasSubstr(R"("due_before":"2027-01-01T08:00:00.250Z")"));
  EXPECT_THAT(asked("1h", kOlderStats), HasSubstr(R"("due_before":"2027-01-01T09:00:00.000Z")"))
      << "an older daemon dates its answers";
  EXPECT_THAT(asked("2027-01-01T08:30:00Z", told), HasSubstr(R"("2027-01-01T08:30:00Z")"));
}

TEST(CancelByFilterTest, ATerminalIsAskedWithTheCount) {
  const Outcome no =
      Ctl({"cancel", "--queue", "orders"},
          {.daemon = TwoSteps, .input = "n\n", .in_is_terminal = true, .traits = kTerminal});
  EXPECT_EQ(no.code, 1);
  EXPECT_THAT(no.err, AllOf(HasSubstr("cancel 300 jobs? [y/N]"), HasSubstr("nothing was changed")));
  EXPECT_EQ(no.requests.size(), 2U);  // the dry run
  for (const char* answer : {"y\n", "YES\n"}) {
    const Outcome yes =
        Ctl({"cancel", "--queue", "orders"},
            {.daemon = TwoSteps, .input = answer, .in_is_terminal = true, .traits = kTerminal});
    EXPECT_EQ(yes.code, 0);
    EXPECT_EQ(yes.requests.size(), 5U);  // and a look for dead ones
  }
}

TEST(CancelByFilterTest, WhereNobodyCanBeAskedYesIsRequired) {
  const Outcome outcome = Ctl({"cancel", "--queue", "orders"}, {.daemon = TwoSteps});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--dry-run"), HasSubstr("--yes")));
  EXPECT_TRUE(outcome.requests.empty());
}

TEST(CancelByFilterTest, ADryRunCountsAndShowsTheFirst) {
  const Outcome outcome = Ctl({"cancel", "--queue", "orders", "--dry-run"}, {.daemon = TwoSteps});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("order:1001"), HasSubstr("300 jobs match; nothing was changed")));
  EXPECT_THAT(outcome.requests.at(2).target, HasSubstr("limit=10"));
  EXPECT_EQ(Ctl({"cancel", "--queue", "orders", "-n", "-o", "json"}, {.daemon = TwoSteps}).out,
            "{\"matched\":300,\"changed\":0}\n");
  EXPECT_EQ(Ctl({"cancel", "--queue", "orders", "-n", "-q"}, {.daemon = TwoSteps}).out, "300\n");
}

TEST(CancelByFilterTest, JobsThatWorkersHaveMakeItPartOnly) {
  const Outcome outcome = Ctl({"cancel", "--queue", "orders", "-y"}, {.daemon = [](const Request&) {
                                return Ok(ChangedManyToJson({5, 4, ""}));
                              }});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, StartsWith("cancelled 4 jobs"));
  EXPECT_THAT(outcome.err, HasSubstr("1 job could not be changed"));
}

TEST(CancelByFilterTest, AFailureSaysHowFarItCame) {
  int calls = 0;
  const Outcome outcome =
      Ctl({"cancel", "--queue", "orders", "-y"}, {.daemon = [&](const Request& request) -> Answer {
            return ++calls == 1 ? TwoSteps(request) : Answer(Unavailable("nobody there"));
          }});
  EXPECT_EQ(outcome.code, 1) << "part was done";
  EXPECT_THAT(outcome.err, HasSubstr("stopped when 250 jobs had been cancelled; the same command"));
}

// Their due time is no longer that of the next command.
TEST(RescheduleByFilterTest, AFailureSaysWhetherTheSameCommandMovesTheMovedJobsAgain) {
  const auto told = [](std::vector<std::string> change) {
    std::vector<std::string> args = {"reschedule", "--queue", "orders", "-y"};
    args.insert(args.end(), change.begin(), change.end());
    int calls = 0;
    return Ctl(args, {.daemon = [&](const Request& request) -> Answer {
                 return ++calls == 1 ? TwoSteps(request) : Answer(Unavailable("nobody there"));
               }})
        .err;
  };
  const auto again = HasSubstr(
      "does what is left, and moves these again, to a later time, if they still fit the filter)");
  EXPECT_THAT(told({"--in", "1h"}), again);
  EXPECT_THAT(told({"--at", "2027-01-01T09:00:00Z"}), HasSubstr("does what is left)"));
  EXPECT_THAT(told({"--priority", "3"}), HasSubstr("does what is left)"));
}

TEST(CancelByFilterTest, AFailureBeforeAnyJobIsThatOfTheDaemon) {
  const Outcome outcome =
      Ctl({"cancel", "--queue", "orders", "-y"},
          {.daemon = [](const Request&) { return Answer(Unavailable("nobody there")); }});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.err, "delayctl: nobody there\n");
}

TEST(CancelByFilterTest, AnInterruptSaysHowFarItCame) {
  const Outcome outcome =
      Ctl({"cancel", "--queue", "orders", "-y"}, {.daemon = [](const Request& request) -> Answer {
            raise(SIGINT);
            return TwoSteps(request);
          }});
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.requests.size(), 1U);
  EXPECT_EQ(
      outcome.err,
      "delayctl: interrupted (stopped when 250 jobs had been cancelled; the same command does "
      "what is left)\n");
  // It stopped that one command.
  EXPECT_EQ(Ctl({"cancel", "--queue", "orders", "--dry-run"}, {.daemon = TwoSteps}).code, 0);
}

TEST(CancelByFilterTest, WhatIsRefusedIsNotToBeRepeated) {
  const auto daemon = [](const Request&) {
    return Problem(InvalidArgument("queue names end with a letter"));
  };
  EXPECT_EQ(Ctl({"cancel", "--queue", "orders", "-y"}, {.daemon = daemon}).err,
            "delayctl: queue names end with a letter\n");
}

// Two queues have dead jobs; each answer is a step of one job.
Answer DeadInTwoQueues(const Request& request) {
  if (request.target.starts_with("/v1/queues")) {
    return Ok(protocol::QueuesToJson(
        {{.name = "a", .dead = 1}, {.name = "b"}, {.name = "c", .dead = 1}}));
  }
  const bool dry = request.body.find("dry_run") != std::string::npos;
  return request.method == "GET"
             ? Ok(protocol::JobPageToJson({.jobs = {SomeJob()}, .next_cursor = ""}))
             : Ok(ChangedManyToJson({1, dry ? 0U : 1U, ""}));
}

TEST(CancelByFilterTest, DeadJobsOfAllQueuesAreChangedQueueByQueue) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"cancel", "--state", "dead", "-y"},
        {"kick", "--state", "dead", "-y"},
        {"kick", "--key-prefix", "o", "-y"}}) {
    const Outcome outcome = Ctl(args, {.daemon = DeadInTwoQueues});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("ed 2 jobs in"));
    ASSERT_EQ(outcome.requests.size(), 3U);
    EXPECT_THAT(outcome.requests[1].body, HasSubstr(R"({"filter":{"queue":"a","state":"dead")"));
    EXPECT_THAT(outcome.requests[2].body, HasSubstr(R"({"filter":{"queue":"c","state":"dead")"));
  }
  const Outcome dry = Ctl({"kick", "--state", "dead", "-n"}, {.daemon = DeadInTwoQueues});
  EXPECT_THAT(dry.out, HasSubstr("2 jobs match"));
  EXPECT_THAT(dry.requests.back().target, HasSubstr("queue=c&state=dead"));
}

TEST(CancelByFilterTest, DeadJobsThatAreLeftAreTold) {
  const auto daemon = [](const Request& request) {
    return request.target == "/v1/queues/mix"
               ? Ok(protocol::QueueToJson({.name = "mix", .dead = 3}))
               : Ok(ChangedManyToJson({5, 5, ""}));
  };
  EXPECT_EQ(Ctl({"cancel", "--queue", "mix", "-y"}, {.daemon = daemon}).err,
            "queue mix has 3 dead jobs, which this leaves alone; for those add --state dead\n");
  for (const char* option : {"-q", "--state=ready", "-ojson", "--key-prefix=x"}) {
    EXPECT_EQ(Ctl({"cancel", "--queue", "mix", "-y", option}, {.daemon = daemon}).err, "");
  }
  EXPECT_EQ(Ctl({"reschedule", "--queue", "mix", "--in", "1h", "-y"}, {.daemon = daemon}).err, "");
}

TEST(CancelByFilterTest, ContradictionsAreUsageErrors) {
  EXPECT_EQ(Ctl({"cancel", "7", "--state", "ready"}).code, 2);
  EXPECT_EQ(Ctl({"cancel", "7", "--dry-run"}).code, 2);
  EXPECT_EQ(Ctl({"cancel", "--state", "leased", "-y"}).code, 2);
  EXPECT_THAT(Ctl({"kick", "--queue", "q", "--state", "ready", "-y"}).err,
              HasSubstr("'ready' is no state in which that can be done; use dead or scheduled"));
  EXPECT_THAT(Ctl({"reschedule", "--queue", "q", "--state", "dead", "--in", "1h", "-y"}).err,
              HasSubstr("'dead' is no state in which that can be done; use scheduled or ready"));
  EXPECT_EQ(Ctl({"cancel", "--due-before", "10", "-y"}).code, 2);
  EXPECT_THAT(Ctl({"cancel", "--stat", "ready"}).err, HasSubstr("--state"));
}

TEST(CancelByFilterTest, AnEmptyPrefixIsNotEveryJob) {
  const Outcome outcome = Ctl({"cancel", "--queue", "orders", "--key-prefix", "", "-y"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--key-prefix is empty"));
}

TEST(KickByFilterTest, ADryRunShowsTheJobsThatItWouldKick) {
  std::vector<std::string> asked;
  const Outcome outcome =
      Ctl({"kick", "--queue", "orders", "--key-prefix", "order:", "--dry-run"},
          {.daemon = [&asked](const Request& request) -> Answer {
            asked.push_back(request.target + " " + request.body);
            return request.method == "POST"
                       ? Ok(protocol::ChangedManyToJson({1, 0, ""}))
                       : Ok(protocol::JobPageToJson({.jobs = {SomeJob()}, .next_cursor = ""}));
          }});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_THAT(asked[0], HasSubstr(R"("state":"dead")"));
  EXPECT_THAT(asked[1], HasSubstr("state=dead"));
}

// Each step is a look at the queue and a kick of 1,000.
TEST(KickFirstTest, AFailureSaysHowFarItCame) {
  const auto kick = [](int calls, const Status& failure) {
    return Ctl({"kick", "--queue", "orders", "--count", "2500"},
               {.daemon = [=](const Request& request) mutable -> Answer {
                 if (calls-- == 0) {
                   return failure;
                 }
                 return Ok(request.method == "GET"
                               ? protocol::QueueToJson({.name = "orders", .dead = 9999})
                               : protocol::KickedToJson(1000));
               }});
  };
  const Status away = Unavailable("nobody there");
  const Status lost = Unknown("no answer", "timed_out");
  EXPECT_EQ(kick(0, away).err, "delayctl: nobody there\n");
  EXPECT_EQ(kick(0, away).code, 5);
  EXPECT_EQ(kick(2, away).code, 1) << "part was done: a script must not repeat it as after 5";
  EXPECT_EQ(kick(2, away).err,
            "delayctl: nobody there (stopped when 1000 of 2500 jobs had been kicked)\n");
  EXPECT_EQ(kick(3, lost).err,
            "delayctl: no answer (stopped when 1000 of 2500 jobs had been kicked; up to 1000 more "
            "may have been)\n");
  EXPECT_THAT(kick(5, lost).err, HasSubstr("when 2000 of 2500 jobs had been kicked; up to 500 "));
}

TEST(RescheduleByFilterTest, SendsTheChangeWithTheFilter) {
  const Outcome outcome =
      Ctl({"reschedule", "--queue", "orders", "--in", "1h", "--priority", "3", "-y"},
          {.daemon = TwoSteps});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("rescheduled 300 jobs"));
  EXPECT_EQ(outcome.requests.at(0).target, "/v1/jobs:reschedule");
  EXPECT_EQ(outcome.requests.at(0).body,
            R"({"filter":{"queue":"orders"},"delay":"1h","priority":3,"limit":300})");
}

Answer SomeForecast(const Request& request) {
  if (request.target == "/v1/stats") {
    return Ok(kOlderStats);
  }
  return Ok(protocol::ForecastToJson(
      {{WallFromMillis(kTestNow), WallFromMillis(kTestNow + 60'000), 12, false},
       {WallFromMillis(kTestNow + 60'000), WallFromMillis(kTestNow + 120'000), 6, true}}));
}

TEST(ForecastVerbTest, AsksForTheRangeInRoundSteps) {
  const Outcome outcome =
      Ctl({"forecast", "--queue", "orders", "--to", "24h"}, {.daemon = SomeForecast});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.requests.at(1).target,
            "/v1/forecast?queue=orders&from=2027-01-01T09%3A00%3A00.000Z"
            "&to=2027-01-02T09%3A00%3A00.000Z&step=1h");
  EXPECT_EQ(outcome.out,
            "FROM                      TO                        BEGINS  DUE\n"
            "2027-01-01T09:00:00.000Z  2027-01-01T09:01:00.000Z  now     12\n"
            "2027-01-01T09:01:00.000Z  2027-01-01T09:02:00.000Z  in 1m   ~6\n");
}

// It was "1ms ago".
TEST(ForecastVerbTest, TheFirstStepBeginsNowHoweverLongTheAnswerTakes) {
  const auto daemon = [](const Request& request) {
    return request.target == "/v1/stats" ? Ok(R"({"now":"2027-01-01T09:00:00.000Z","scheduled":0})")
                                         : SomeForecast(request);
  };
  EXPECT_THAT(Ctl({"forecast"}, {.daemon = daemon, .call_takes = Millis(1500)}).out,
              AllOf(HasSubstr("  now     12\n"), HasSubstr("  in 1m   ~6\n")));
}

TEST(ForecastVerbTest, BeginsAtTheDaemonsNow) {
  const Outcome outcome = Ctl({"forecast", "--to", "1h"},
                              {.daemon = SomeForecast, .daemon_ahead = std::chrono::hours(3)});
  EXPECT_THAT(outcome.requests.back().target,
              HasSubstr("from=2027-01-01T12%3A00%3A00.000Z&to=2027-01-01T13"));
}

TEST(ForecastVerbTest, DrawsAChartInTheWidthOfTheTerminal) {
  EXPECT_EQ(Ctl({"forecast", "--chart"}, {.daemon = SomeForecast, .traits = {.width = 30}}).out,
            "09:00:00  12  ###############\n"
            "09:01:00  ~6  #######\n");
  EXPECT_THAT(
      Ctl({"forecast", "--chart"}, {.daemon = SomeForecast, .traits = {.utf8 = true, .width = 30}})
          .out,
      HasSubstr("███████▌\n"));
}

TEST(ForecastVerbTest, EveryOutputFormat) {
  EXPECT_EQ(Ctl({"forecast", "-o", "json"}, {.daemon = SomeForecast}).out,
            SomeForecast({})->body + "\n");
  EXPECT_THAT(Ctl({"forecast", "-o", "jsonl"}, {.daemon = SomeForecast}).out,
              HasSubstr("\"approximate\":true}\n"));
  EXPECT_EQ(Ctl({"forecast", "-q"}, {.daemon = SomeForecast}).out, "12\n6\n");
}

TEST(ForecastVerbTest, WrongUseGivesAHint) {
  EXPECT_THAT(Ctl({"forecast", "--from", "1h", "--to", "1m"}, {.daemon = SomeForecast}).err,
              HasSubstr("--to 24h"));
  EXPECT_EQ(Ctl({"forecast", "--step", "0s"}, {.daemon = SomeForecast}).code, 2);
  EXPECT_EQ(Ctl({"forecast", "--to", "tomorow"}).code, 2);
  EXPECT_EQ(Ctl({"forecast", "--chart", "-o", "json"}).code, 2);
}

}  // namespace
}  // namespace delayd::cli
