// list --watch, top, status, wait and run.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/bulk_json.h"
#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using protocol::JobPageToJson;
using protocol::JobToJson;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

JobView InState(JobState state, uint64_t id = 42) {
  JobView job = SomeJob(id);
  job.state = state;
  return job;
}

// Answers the i-th request with the i-th body, the last one for ever.
FakeDaemon::Function InTurn(std::vector<Answer> answers) {
  return [answers = std::move(answers), i = size_t{0}](const Request&) mutable {
    return answers[std::min(i++, answers.size() - 1)];
  };
}

// Of a watch: each change with the id of its job.
std::vector<std::string> Changes(const std::string& out) {
  std::vector<std::string> changes;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    changes.push_back(line.substr(0, line.find(",\"queue")));
  }
  return changes;
}

TEST(ListWatchTest, PrintsWhatChangedAsLines) {
  const Outcome outcome =
      Ctl({"list", "--watch", "-o", "jsonl"},
          {.daemon = InTurn({Ok(JobPageToJson({{SomeJob(1), SomeJob(2)}, ""})),
                             Ok(JobPageToJson({{SomeJob(1), SomeJob(2)}, ""})),
                             Ok(JobPageToJson({{InState(JobState::kReady, 2), SomeJob(3)}, ""})),
                             Problem(PermissionDenied("refused"))})});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(Changes(outcome.out),
              ::testing::ElementsAre(R"({"change":"appeared","job":{"id":1)",
                                     R"({"change":"appeared","job":{"id":2)",
                                     R"({"change":"changed","job":{"id":2)",
                                     R"({"change":"appeared","job":{"id":3)",
                                     R"({"change":"gone","job":{"id":1)"));
}

// Two are watched, of more.
TEST(ListWatchTest, WhatSlidesOutOfTheWindowIsNotGoneAndWhatSlidesInDidNotAppear) {
  const auto at = [](uint64_t id, int minute, JobState state = JobState::kScheduled) {
    JobView job = InState(state, id);
    job.payload.reset();
    job.due = WallFromMillis(kTestNow) + std::chrono::minutes(minute);
    return job;
  };
  const auto watched = [](JobView first, JobView second) {
    return Ok(JobPageToJson({{std::move(first), std::move(second)}, "1-2a"}));
  };
  JobView shown = at(20, 20);
  shown.payload = "of no meaning to a list";
  const Outcome outcome =
      Ctl({"list", "--watch", "-o", "jsonl", "--limit", "2"},
          {.daemon = InTurn({watched(at(10, 10), at(20, 20)),
                             watched(at(5, 5), at(10, 10)),  // a new one
                             Ok(JobToJson(shown)),
                             watched(at(10, 10), at(20, 20)),  // 5 is worked off
                             Problem(NotFound("job 5 is not known")),
                             watched(at(20, 20), at(30, 30)),  // 10 put off
                             Ok(JobToJson(at(10, 90))),
                             watched(at(30, 30), at(40, 40)),  // 20 is buried
                             Ok(JobToJson(at(20, 20, JobState::kDead))),
                             Ok(JobPageToJson({{at(40, 40), at(10, 90)}, ""})),
                             Problem(PermissionDenied("refused"))})});
  EXPECT_THAT(Changes(outcome.out),
              ::testing::ElementsAre(R"({"change":"appeared","job":{"id":10)",
                                     R"({"change":"appeared","job":{"id":20)",
                                     R"({"change":"appeared","job":{"id":5)",
                                     R"({"change":"gone","job":{"id":5)",
                                     R"({"change":"changed","job":{"id":10)",
                                     R"({"change":"gone","job":{"id":20)",
                                     R"({"change":"gone","job":{"id":30)"));
}

// One is watched, of more.
TEST(ListWatchTest, WhatIsPutOffBeyondTheTimesOfTheFilterIsGone) {
  const auto watched = [](uint64_t id) { return Ok(JobPageToJson({{SomeJob(id)}, "1-2a"})); };
  const auto due_in = [](int minutes) {
    JobView job = SomeJob(1);
    job.due = WallFromMillis(kTestNow) + std::chrono::minutes(minutes);
    return Ok(JobToJson(job));
  };
  const auto changes = [&](int minutes) {
    return Changes(
        Ctl({"list", "-w", "-o", "jsonl", "-n", "1", "--due-before", "1h"},
            {.daemon = InTurn(
                 {watched(1), watched(2), due_in(minutes), Problem(PermissionDenied("refused"))})})
            .out);
  };
  EXPECT_THAT(changes(90), ::testing::Contains(R"({"change":"gone","job":{"id":1)"));
  EXPECT_THAT(changes(45), ::testing::Contains(R"({"change":"changed","job":{"id":1)"));
}

TEST(ListWatchTest, WhatADaemonThatWentCannotSayIsAskedWithTheNextLook) {
  const auto watched = [](uint64_t id) { return Ok(JobPageToJson({{SomeJob(id)}, "1-2a"})); };
  const Outcome outcome = Ctl({"list", "-w", "-o", "jsonl", "-n", "1"},
                              {.daemon = InTurn({watched(2),
                                                 watched(1),
                                                 Unavailable("nobody there", "unreachable"),
                                                 watched(1),
                                                 Problem(NotFound("job 2 is not known")),
                                                 Problem(PermissionDenied("refused"))})});
  EXPECT_THAT(Changes(outcome.out),
              ::testing::ElementsAre(R"({"change":"appeared","job":{"id":2)",
                                     R"({"change":"appeared","job":{"id":1)",
                                     R"({"change":"gone","job":{"id":2)"));
}

TEST(ListWatchTest, AJobThatCannotBeReadHidesNoChangeOfOthers) {
  const auto watched = [](uint64_t id) { return Ok(JobPageToJson({{SomeJob(id)}, "1-2a"})); };
  const Outcome outcome =
      Ctl({"list", "-w", "-o", "jsonl", "-n", "1"},
          {.daemon = InTurn({watched(1),
                             watched(2),
                             Problem(DataLoss("the record of job 1 is damaged", "damaged")),
                             watched(3),
                             Problem(NotFound("job 2 is not known")),
                             Problem(PermissionDenied("refused"))})});
  EXPECT_THAT(Changes(outcome.out),
              ::testing::ElementsAre(R"({"change":"appeared","job":{"id":1)",
                                     R"({"change":"gone","job":{"id":1)",
                                     R"({"change":"gone","job":{"id":2)"));
}

TEST(ListWatchTest, ThatNotAllIsWatchedIsToldOnce) {
  const auto told = [](std::vector<std::string> more_args, const std::string& cursor) {
    std::vector<std::string> args = {"list", "--watch", "-o", "jsonl"};
    args.insert(args.end(), more_args.begin(), more_args.end());
    const auto daemon = [&](const Request&) {
      return Ok(JobPageToJson({std::vector<JobView>(100, SomeJob()), cursor}));
    };
    return Ctl(args, {.daemon = RefusedAfter(3, daemon)}).err;
  };
  const std::string more = told({}, "1-2a");
  EXPECT_THAT(more, HasSubstr("only the first 100 are watched"));
  EXPECT_EQ(std::ranges::count(more, '\n'), 2) << more;
  EXPECT_THAT(told({}, ""), Not(HasSubstr("watched")));
  EXPECT_THAT(told({"--limit", "100"}, "1-2a"), Not(HasSubstr("watched")));
  const auto cut = [](const Request&) { return Ok(JobPageToJson({{SomeJob()}, "1-2a"})); };
  EXPECT_THAT(
      Ctl({"list", "-w", "-n", "1"}, {.daemon = RefusedAfter(1, cut), .traits = kTerminal}).out,
      HasSubstr("the first 1 job; Ctrl-C ends"));
}

TEST(ListWatchTest, ADaemonThatGoesMeanwhileIsWaitedFor) {
  const Outcome outcome = Ctl({"list", "--watch", "-o", "jsonl"},
                              {.daemon = InTurn({Ok(JobPageToJson({{SomeJob(1)}, ""})),
                                                 Unavailable("nobody there", "unreachable"),
                                                 DeadlineExceeded("no answer", "timed_out"),
                                                 Ok(JobPageToJson({{SomeJob(2)}, ""})),
                                                 Problem(PermissionDenied("refused"))})});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(
      outcome.err,
      AllOf(StartsWith("{\"type\""), HasSubstr("nobody there; waiting for delayd\"}\n{\"type\"")));
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr(R"("appeared","job":{"id":2)"), HasSubstr(R"("gone","job":{"id":1)")));
  const FakeDaemon::Function nobody = InTurn({Unavailable("nobody there", "unreachable")});
  EXPECT_EQ(Ctl({"list", "--watch", "-o", "jsonl"}, {.daemon = nobody}).code, 5);
}

TEST(ListWatchTest, ALeaseThatRunsOnIsNoChange) {
  JobView job = InState(JobState::kLeased);
  job.lease_expires = WallFromMillis(kTestNow);
  JobView later = job;
  later.lease_expires = WallFromMillis(kTestNow + 1);
  const Outcome outcome = Ctl({"list", "-w", "-o", "jsonl"},
                              {.daemon = InTurn({Ok(JobPageToJson({{job}, ""})),
                                                 Ok(JobPageToJson({{later}, ""})),
                                                 Problem(PermissionDenied("refused"))})});
  EXPECT_THAT(outcome.out, Not(HasSubstr("changed")));
}

TEST(ListWatchTest, DeadJobsOfAllQueuesAreWatchedThoughADaemonListsThemByQueue) {
  const auto daemon = [](const Request& request) {
    if (request.target.starts_with("/v1/queues")) {
      return Ok(
          R"({"queues":[{"name":"a","scheduled":0,"ready":0,"leased":0,"dead":2,"paused":false},)"
          R"({"name":"b","scheduled":1,"ready":0,"leased":0,"dead":0,"paused":false},)"
          R"({"name":"c","scheduled":0,"ready":0,"leased":0,"dead":1,"paused":false}]})");
    }
    if (request.target.find("queue=a&") != std::string::npos) {
      return Ok(JobPageToJson({{InState(JobState::kDead, 1), InState(JobState::kDead, 2)}, ""}));
    }
    return request.target.find("queue=c&") != std::string::npos
               ? Ok(JobPageToJson({{InState(JobState::kDead, 3)}, ""}))
               : Problem(InvalidArgument("a list of dead jobs needs a queue", "queue_required"));
  };
  const auto jobs_seen = [&](std::vector<std::string> args) {
    const Outcome outcome = Ctl(args, {.daemon = RefusedAfter(6, daemon)});
    return std::ranges::count(outcome.out, '\n');
  };
  EXPECT_EQ(jobs_seen({"list", "--state", "dead", "--watch", "-o", "jsonl"}), 3);
  EXPECT_EQ(jobs_seen({"list", "--state", "dead", "--watch", "-o", "jsonl", "--limit", "2"}), 2);
}

TEST(ListWatchTest, RedrawsATerminalAndRefusesWhatIsNone) {
  const Outcome outcome = Ctl({"list", "--watch"},
                              {.daemon = RefusedAfter(2,
                                                      [](const Request&) {
                                                        return Ok(JobPageToJson({{SomeJob()}, ""}));
                                                      }),
                               .traits = kTerminal});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\x1b[H\x1b[2J"), HasSubstr("1 job; Ctrl-C ends")));
  EXPECT_THAT(Ctl({"list", "--watch"}).err, HasSubstr("-o jsonl"));
  EXPECT_EQ(Ctl({"list", "--watch", "-o", "json"}, {.traits = kTerminal}).code, 2);
  EXPECT_THAT(Ctl({"list", "--watch", "-q"}, {.traits = kTerminal}).err,
              HasSubstr("leave one out"));
}

TEST(WatchingTest, WhoReadsStdoutIsMissedThoughNothingIsWritten) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  const auto daemon = RefusedAfter(6, [](const Request& request) {
    return request.target.starts_with("/v1/jobs")
               ? Ok(JobPageToJson({{SomeJob()}, ""}))
               : Ok(R"({"status":"ready","version":"9","scheduled":0,"queues":[],"steps":[]})");
  });
  const auto watch = [&](const std::vector<std::string>& args) {
    return Ctl(args, {.daemon = daemon, .traits = {.out_fd = ends[1]}});
  };
  const auto before = signal(SIGPIPE, SIG_DFL);  // whatever the tests before made of it
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"list", "--watch", "-o", "jsonl"}, {"top", "-o", "jsonl", "--interval", "1h"}}) {
    EXPECT_EXIT(watch(args), ::testing::KilledBySignal(SIGPIPE), "");
  }
  signal(SIGPIPE, SIG_IGN);
  const Outcome outcome = watch({"list", "--watch", "-o", "jsonl"});
  signal(SIGPIPE, before);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.requests.size(), 1U);
  EXPECT_THAT(outcome.err, HasSubstr("its reader gone?"));
  close(ends[1]);
}

TEST(WaitVerbTest, ExitCodesTellTheOutcome) {
  JobView acked = InState(JobState::kFinished);
  acked.outcome = "acked";
  JobView cancelled = acked;
  cancelled.outcome = "cancelled";
  const auto wait = [](const JobView& end) {
    return Ctl({"wait", "42"},
               {.daemon = InTurn(
                    {Ok(JobToJson(SomeJob())), Ok(JobToJson(SomeJob())), Ok(JobToJson(end))})});
  };
  EXPECT_EQ(wait(acked).code, 0);
  EXPECT_EQ(wait(acked).out, "job 42 in queue orders: acked\n");
  EXPECT_EQ(wait(cancelled).code, 4);
  EXPECT_EQ(wait(InState(JobState::kDead)).code, 1);
}

TEST(WaitVerbTest, OfAJobThatIsForgottenWhenItEndsNoOutcomeIsGuessed) {
  const auto gone = [](JobState seen_last, const std::string& output) {
    return Ctl({"wait", "42", "-o", output},
               {.daemon = InTurn({Ok(JobToJson(InState(seen_last))),
                                  Problem(NotFound("job 42 is not known"))})});
  };
  for (const JobState seen : {JobState::kScheduled, JobState::kReady, JobState::kLeased}) {
    const Outcome outcome = gone(seen, "table");
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("job 42 is gone: acked, cancelled or dropped"));
  }
  EXPECT_THAT(gone(JobState::kLeased, "json").err, HasSubstr(R"("code":"gone")"));
  EXPECT_EQ(Ctl({"wait", "42"}, {.daemon = InTurn({Problem(NotFound("no"))})}).code, 3);
}

TEST(WaitVerbTest, AKeyMeansTheJobThatHadItFirst) {
  JobView acked = InState(JobState::kFinished);
  acked.outcome = "acked";
  const Outcome outcome = Ctl({"wait", "--queue", "orders", "--key", "order:1001"},
                              {.daemon = InTurn({Ok(JobToJson(SomeJob())), Ok(JobToJson(acked))})});
  EXPECT_EQ(outcome.requests.at(0).target, "/v1/queues/orders/jobs/by-key/order%3A1001");
  EXPECT_EQ(outcome.requests.at(1).target, "/v1/jobs/42");
}

TEST(WaitVerbTest, ADaemonThatGoesMeanwhileIsWaitedFor) {
  JobView acked = InState(JobState::kFinished);
  acked.outcome = "acked";
  const Outcome outcome = Ctl({"wait", "42"},
                              {.daemon = InTurn({Ok(JobToJson(SomeJob())),
                                                 Unavailable("nobody there", "unreachable"),
                                                 DeadlineExceeded("no answer", "timed_out"),
                                                 Ok("default backend - 404", 404),
                                                 Ok(JobToJson(acked))})});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "nobody there; waiting for delayd\n");
  const FakeDaemon::Function nobody = InTurn({Unavailable("nobody there", "unreachable")});
  EXPECT_EQ(Ctl({"wait", "42"}, {.daemon = nobody}).code, 5);
  EXPECT_EQ(Ctl({"wait", "42", "--wait", "1h"},
                {.daemon = InTurn({Ok(JobToJson(SomeJob())), Unavailable("nobody there")})})
                .code,
            5);
}

TEST(WaitVerbTest, GivesUpWhenToldTo) {
  const Outcome outcome =
      Ctl({"wait", "42", "--wait", "1s"}, {.daemon = InTurn({Ok(JobToJson(SomeJob()))})});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_THAT(outcome.err, HasSubstr("job 42 is still scheduled after 1s; it is due in"));
  EXPECT_EQ(outcome.requests.size(), 6U);
}

// With a second for the answer.
TEST(WaitVerbTest, ADaemonThatHangsIsNotWaitedForForLonger) {
  const auto timeouts = [](std::vector<std::string> args) {
    args.insert(args.begin(), {"wait", "42"});
    std::vector<int64_t> seen;
    for (const Request& request :
         Ctl(args,
             {.daemon = InTurn(
                  {Ok(JobToJson(SomeJob())), Ok(JobToJson(SomeJob())), Problem(NotFound("no"))})})
             .requests) {
      seen.push_back(request.timeout.count());
    }
    return seen;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(timeouts({"--wait", "1200ms", "--timeout", "9s"}), ElementsAre(1200, 1000, 1000));
  EXPECT_THAT(timeouts({"--wait", "1200ms", "--timeout", "300ms"}), ElementsAre(300, 300, 300));
  EXPECT_THAT(timeouts({"--timeout", "9s"}), ElementsAre(9000, 9000, 9000));
  const Outcome outcome = Ctl(
      {"wait", "42", "--wait", "1s"},
      {.daemon = InTurn({DeadlineExceeded("no answer", "timed_out")}), .call_takes = Millis(1000)});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_EQ(outcome.err, "delayctl: no answer and --wait\n");
}

TEST(WaitVerbTest, ForFiredEndsWhenTheJobIsDue) {
  EXPECT_EQ(
      Ctl({"wait", "42", "--for", "fired"},
          {.daemon = InTurn({Ok(JobToJson(SomeJob())), Ok(JobToJson(InState(JobState::kReady)))})})
          .code,
      0);
  EXPECT_EQ(Ctl({"wait", "42", "--for", "ever"}).code, 2);
  EXPECT_EQ(Ctl({"wait", "42", "43"}).code, 2);
}

TEST(WaitVerbTest, ForFiredSeesAJobThatWasHandedOutAndGivenBackBetweenTwoLooks) {
  const auto wait = [](const JobView& first, const JobView& then) {
    return Ctl({"wait", "42", "--for", "fired", "--wait", "1s"},
               {.daemon = InTurn({Ok(JobToJson(first)), Ok(JobToJson(then))})});
  };
  JobView nacked = SomeJob();
  nacked.attempt = 1;
  nacked.reserves = 1;
  EXPECT_EQ(wait(SomeJob(), nacked).code, 0);
  EXPECT_EQ(wait(SomeJob(), nacked).out, "job 42 in queue orders: scheduled again\n");
  for (const JobState state : {JobState::kDead, JobState::kFinished}) {
    JobView ended = nacked;
    ended.state = state;
    ended.outcome = state == JobState::kFinished ? "cancelled" : "";
    EXPECT_EQ(wait(SomeJob(), ended).code, 0);
  }
  EXPECT_EQ(wait(SomeJob(), InState(JobState::kDead)).code, 1) << "expired";
  // Given back without an attempt; and replaced before, when the attempts began anew.
  JobView given_back = SomeJob();
  given_back.reserves = 1;
  EXPECT_EQ(wait(SomeJob(), given_back).code, 0);
  EXPECT_EQ(wait(given_back, given_back).code, 6);
}

TEST(RunVerbTest, MovesTheJobToNow) {
  const Outcome outcome =
      Ctl({"run", "42"}, {.daemon = InTurn({Ok(JobToJson(InState(JobState::kReady)))})});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.requests.at(0).body, R"({"delay":"0s"})");
  EXPECT_EQ(outcome.out, "job 42 in queue orders is ready\n");
}

// A daemon of which every counter rises by ten a look.
FakeDaemon::Function Busy() {
  return [count = uint64_t{0}](const Request& request) mutable {
    if (request.target == "/v1/stats") {
      count += 10;
      return Ok(protocol::StatsToJson({{"scheduled", uint64_t{7}},
                                       {"ready", uint64_t{1}},
                                       {"leased", uint64_t{2}},
                                       {"dead", uint64_t{0}},
                                       {"queues", uint64_t{1}},
                                       {"waiting", uint64_t{3}},
                                       {"enqueued", count},
                                       {"acked", 2 * count},
                                       {"damaged", uint64_t{0}},
                                       {"epoch", uint64_t{4}},
                                       {"next_due", std::string("2027-01-01T09:00:30.000Z")}}));
    }
    if (request.target == "/v1/queues?limit=1000") {
      return Ok(protocol::QueuesToJson({{"idle", 5, 0, 0, 0, false}, {"busy", 2, 1, 2, 0, true}}));
    }
    if (request.target == "/readyz") {
      return Ok(protocol::HealthToJson({"ready", "1.2.3"}));
    }
    if (request.target.starts_with("/v1/forecast")) {
      return Ok(protocol::ForecastToJson(
          {{WallFromMillis(kTestNow), WallFromMillis(kTestNow + 2000), 3, false}}));
    }
    JobView late = InState(JobState::kReady);
    late.due = WallFromMillis(kTestNow - 2000);
    return Ok(JobPageToJson({{late}, ""}));
  };
}

TEST(TopVerbTest, AnIntervalThatIsTooShortIsToldTheLeast) {
  const Outcome outcome = Ctl({"top", "--once", "--interval", "50ms"}, {.daemon = Busy()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("give 100ms or more"));
}

TEST(TopVerbTest, OnceShowsRatesLatenessAndTheBusiestQueuesFirst) {
  const Outcome outcome = Ctl({"top", "--once"}, {.daemon = Busy()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("7 scheduled, 1 ready, 2 leased, 0 dead, 3 workers waiting"),
                    HasSubstr("enqueued 10.0/s"),
                    HasSubstr("acked 20.0/s"),
                    HasSubstr("late    3s"),
                    HasSubstr("3 due in the next 60s"),
                    Not(HasSubstr("\x1b"))));
  EXPECT_LT(outcome.out.find("busy"), outcome.out.find("idle"));
}

TEST(TopVerbTest, LateIsTheFirstReadyJobHoweverManyLieBeforeIt) {
  const auto daemon = [busy = Busy()](const Request& request) {
    return request.target.starts_with("/v1/jobs?") && !request.target.ends_with("&cursor=1-2a")
               ? Ok(JobPageToJson({{}, "1-2a"}))
               : busy(request);
  };
  EXPECT_THAT(Ctl({"top", "--once"}, {.daemon = daemon}).out, HasSubstr("late    3s"));
}

TEST(TopVerbTest, RedrawsATerminalUntilItEnds) {
  const Outcome outcome =
      Ctl({"top", "--interval", "5s"}, {.daemon = RefusedAfter(10, Busy()), .traits = kTerminal});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\x1b[H\x1b[2J"), HasSubstr("enqueued 2.0/s")));
}

TEST(TopVerbTest, ADaemonThatGoesMeanwhileIsWaitedFor) {
  const auto daemon = [busy = Busy(), call = 0](const Request& request) mutable -> Answer {
    ++call;
    return call == 7 ? Answer(Unavailable("nobody there", "unreachable")) : busy(request);
  };
  const Outcome outcome = Ctl({"top", "-o", "jsonl"}, {.daemon = RefusedAfter(17, daemon)});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(
      outcome.err,
      AllOf(StartsWith("{\"type\""), HasSubstr("nobody there; waiting for delayd\"}\n{\"type\"")));
  EXPECT_THAT(outcome.out, HasSubstr(R"("interval_ms":2000,)"));
  const FakeDaemon::Function nobody = InTurn({Unavailable("nobody there", "unreachable")});
  EXPECT_EQ(Ctl({"top", "-o", "jsonl"}, {.daemon = nobody}).code, 5);
  EXPECT_EQ(Ctl({"top", "--once"}, {.daemon = daemon}).code, 5);
}

TEST(TopVerbTest, AViewIsNoHigherThanTheScreen) {
  const auto view = [](size_t width, size_t height) {
    Console::Traits traits = kTerminal;
    traits.color = true;
    traits.width = width;
    traits.height = height;
    const std::string out =
        Ctl({"top", "--interval", "5s"}, {.daemon = RefusedAfter(10, Busy()), .traits = traits})
            .out;
    return out.substr(0, out.find("\x1b[H", 1));
  };
  EXPECT_THAT(view(100, 11), AllOf(HasSubstr("idle"), Not(HasSubstr("more lines"))));
  // Seven lines of head, the table's, two queues, and the row of the cursor.
  EXPECT_THAT(view(100, 10),
              AllOf(HasSubstr("jobs "), Not(HasSubstr("busy")), HasSubstr("and 2 more lines\n")));
  // One line needs two rows.
  EXPECT_THAT(view(70, 12), HasSubstr("idle"));
  EXPECT_THAT(view(70, 11), HasSubstr("more lines"));
}

TEST(TopVerbTest, ALongNameDoesNotDriveTheOtherQueuesOffTheScreen) {
  const auto daemon = [busy = Busy()](const Request& request) {
    return request.target == "/v1/queues?limit=1000"
               ? Ok(protocol::QueuesToJson({{std::string(200, 'q'), 5, 2, 0, 0, false},
                                            {"first", 4, 1, 0, 0, false},
                                            {"second", 3, 0, 0, 0, false}}))
               : busy(request);
  };
  Console::Traits traits = kTerminal;
  traits.width = 80;
  traits.height = 13;
  const std::string out =
      Ctl({"top", "--interval", "5s"}, {.daemon = RefusedAfter(10, daemon), .traits = traits}).out;
  EXPECT_THAT(out,
              AllOf(HasSubstr("qqq...  5 "), HasSubstr("second"), Not(HasSubstr("more line"))));
  // What is printed once may be read by a program.
  EXPECT_THAT(Ctl({"top", "--once"}, {.daemon = daemon}).out, HasSubstr(std::string(200, 'q')));
}

TEST(TopVerbTest, ATerminalThatObeysNoSequencesGetsNone) {
  const Outcome outcome =
      Ctl({"top", "--interval", "5s"},
          {.daemon = RefusedAfter(10, Busy()), .traits = {.out_is_terminal = true, .dumb = true}});
  EXPECT_THAT(outcome.out, AllOf(StartsWith("\ndelayd  "), Not(HasSubstr("\x1b"))));
}

TEST(TopVerbTest, StreamsJsonLines) {
  const Outcome outcome = Ctl({"top", "-o", "jsonl"}, {.daemon = RefusedAfter(10, Busy())});
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr(R"("interval_ms":1000,"enqueued_in_interval":10)"),
                    HasSubstr(R"("late_ms":3000)"),
                    HasSubstr(R"("queues":{"queues":[)")));
}

TEST(TopVerbTest, NamesWhatIsWrong) {
  const auto daemon = [busy = Busy()](const Request& request) {
    return request.target == "/readyz"
               ? protocol::HttpResponse{.status = 503,
                                        .body = protocol::HealthToJson(
                                            {"not ready", "1.2.3", {{"disk_full", "no room"}}})}
               : busy(request);
  };
  EXPECT_THAT(Ctl({"top", "--once"}, {.daemon = daemon}).out,
              HasSubstr("wrong   disk_full: no room\n"));
  EXPECT_THAT(Ctl({"top", "--once", "-o", "json"}, {.daemon = daemon}).out,
              HasSubstr(R"("code":"disk_full")"));
}

TEST(TopVerbTest, WrongUseGivesAHint) {
  EXPECT_THAT(Ctl({"top"}).err, HasSubstr("--once"));
  EXPECT_EQ(Ctl({"top", "-o", "json"}, {.traits = kTerminal}).code, 2);
  EXPECT_EQ(Ctl({"top", "--once", "--interval", "1ms"}).code, 2);
}

TEST(StatusVerbTest, SaysWhatTheDaemonHolds) {
  const Outcome outcome = Ctl({"status"}, {.daemon = Busy()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "delayd      1.2.3, ready\n"
            "jobs        7 scheduled, 1 ready, 2 leased, 0 dead, in 1 queue\n"
            "workers     3 waiting for a job\n"
            "next due    2027-01-01T09:00:30.000Z (in 30s)\n");
  EXPECT_THAT(Ctl({"status", "-o", "json"}, {.daemon = Busy()}).out,
              HasSubstr(R"({"status":"ready","version":"1.2.3","stats":{"scheduled":7)"));
}

TEST(StatusVerbTest, WhatIsWrongIsToldThoughTheStatsDoNotCome) {
  const auto stuck = [](const Request& request) {
    return request.target == "/readyz"
               ? Ok(R"({"status":"not ready","version":"1.2.3",)"
                    R"("reasons":[{"code":"commit_stuck","detail":"for 7s"}]})",
                    503)
               : Answer(DeadlineExceeded("no answer within 5s", "timed_out"));
  };
  const Outcome outcome = Ctl({"status"}, {.daemon = stuck});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.out, "delayd      1.2.3, not ready\n            commit_stuck: for 7s\n");
  EXPECT_EQ(outcome.err,
            "delayctl: delayd is not ready: commit_stuck: for 7s; what it holds is not known: "
            "no answer within 5s\n");
  EXPECT_EQ(Ctl({"status", "-o", "json"}, {.daemon = stuck}).out,
            R"({"status":"not ready","version":"1.2.3","why":"commit_stuck: for 7s"})"
            "\n");
}

}  // namespace
}  // namespace delayd::cli
