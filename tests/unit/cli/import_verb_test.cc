#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exit_code.h"
#include "protocol/job_json.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const std::string kThree = "{\"payload\":\"a\"}\n{\"payload\":\"b\"}\n{\"payload\":\"c\"}\n";

TEST(ImportVerbTest, ReadsStdinAndSumsUp) {
  const Outcome outcome = Ctl({"import"}, {.daemon = Accept, .input = kThree});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("imported 3 jobs in 0ms"));
}

TEST(ImportVerbTest, OneJobThatWasThereIsOne) {
  const auto existed = [](const Request&) {
    return Ok(protocol::EnqueuedToJson({SomeJob(), true}) + "\n");
  };
  const Outcome outcome = Ctl({"import"}, {.daemon = existed, .input = "{\"key\":\"k\"}\n"});
  EXPECT_THAT(outcome.err, HasSubstr("imported 1 job (1 was there already)"));
}

// Answers as if these jobs were there.
FakeDaemon::Function WereThere(const std::vector<std::pair<JobState, std::string>>& jobs) {
  std::string body;
  for (const auto& [state, outcome] : jobs) {
    JobView job = SomeJob();
    job.state = state;
    job.outcome = outcome;
    body += protocol::EnqueuedToJson({job, true}) + "\n";
  }
  return [body](const Request&) { return Ok(body); };
}

TEST(ImportVerbTest, JobsThatAreThereAndWillNotFireAreCountedApart) {
  const auto sum = [](const std::vector<std::pair<JobState, std::string>>& jobs,
                      std::vector<std::string> more) {
    more.insert(more.begin(), "import");
    std::string lines;
    for (size_t i = 0; i < jobs.size(); ++i) {
      lines += "{\"key\":\"k" + std::to_string(i) + "\"}\n";
    }
    return Ctl(more, {.daemon = WereThere(jobs), .input = lines});
  };
  const std::pair acked(JobState::kFinished, std::string("acked"));
  const std::pair cancelled(JobState::kFinished, std::string("cancelled"));
  const std::pair dead(JobState::kDead, std::string());
  const std::pair scheduled(JobState::kScheduled, std::string());
  EXPECT_THAT(
      sum({acked, cancelled}, {}).err,
      HasSubstr("imported 2 jobs (2 were there already, 2 of them finished: not enqueued)"));
  EXPECT_THAT(sum({scheduled, dead}, {}).err,
              HasSubstr("(2 were there already, 1 of them dead: not enqueued)"));
  EXPECT_THAT(sum({acked, scheduled, dead}, {}).err,
              HasSubstr("(3 were there already, 1 of them finished and 1 dead: not enqueued)"));
  EXPECT_THAT(sum({acked, scheduled, dead}, {"-o", "json"}).out,
              HasSubstr(R"("existed":3,"finished":1,"dead":1,)"));
  const test::TempDir dir;
  const std::string path = dir.Sub("acks");
  sum({cancelled, dead, scheduled}, {"--ack-log", path});
  EXPECT_EQ(
      test::ReadFile(path),
      R"({"line":1,"id":42,"key":"order:1001","existed":true,"state":"finished","outcome":"cancelled"})"
      "\n"
      R"({"line":2,"id":42,"key":"order:1001","existed":true,"state":"dead"})"
      "\n"
      R"({"line":3,"id":42,"key":"order:1001","existed":true})"
      "\n");
}

TEST(ImportVerbTest, JsonSumsUpOnStdout) {
  const Outcome outcome = Ctl({"import", "-", "-o", "json"}, {.daemon = Accept, .input = kThree});
  EXPECT_EQ(outcome.out,
            "{\"imported\":3,\"existed\":0,\"finished\":0,\"dead\":0,\"bad_lines\":0,\"elapsed_"
            "ms\":0,\"settled_line\":3}\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(ImportVerbTest, WithJsonStderrHasTheProblemAlone) {
  const Outcome outcome =
      Ctl({"import", "-o", "json"}, {.daemon = Accept, .input = kThree + "{\"delay\":90}\n"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("\"settled_line\":3}"));
  EXPECT_THAT(outcome.err, MatchesRegex("\\{\"type\"[^\n]*resume with --skip 3[^\n]*\n"));
  const auto nobody = [](const Request&) { return Unavailable("nobody there", "unreachable"); };
  const Outcome away =
      Ctl({"import", "-o", "jsonl", "--retry-for", "0"}, {.daemon = nobody, .input = kThree});
  EXPECT_EQ(away.code, 5);
  EXPECT_THAT(away.err, MatchesRegex("\\{\"type\"[^\n]*nobody there[^\n]*\n"));
  bool first = true;
  const Outcome waits =
      Ctl({"import", "-o", "json"},
          {.daemon =
               [&](const Request& request) {
                 return std::exchange(first, false) ? nobody(request) : Accept(request);
               },
           .input = kThree});
  EXPECT_EQ(waits.code, 0);
  EXPECT_THAT(waits.err, MatchesRegex("\\{\"type\"[^\n]*nobody there; trying for 30s\"\\}\n"));
  EXPECT_THAT(Ctl({"import", "--retry-for", "0"}, {.daemon = nobody, .input = kThree}).err,
              ::testing::Not(HasSubstr("trying")));
}

TEST(ImportVerbTest, ABadLineSaysHowToResume) {
  const Outcome outcome =
      Ctl({"import"}, {.daemon = Accept, .input = kThree + "{\"delay\":90}\n" + kThree});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("delayctl: line 4: member 'delay': is the number 90"));
  EXPECT_THAT(outcome.err, HasSubstr("resume with --skip 3"));
  ASSERT_EQ(outcome.requests.size(), 1U);
}

TEST(ImportVerbTest, AnInputThatBreaksOffSaysHowToResume) {
  // The end of a terminal whose other side has gone is an error (EIO), unlike that of a pipe.
  const int input = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(input, 0);
  ASSERT_EQ(grantpt(input) | unlockpt(input), 0);
  const int producer = open(ptsname(input), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(producer, 0);
  ASSERT_EQ(write(producer, kThree.data(), kThree.size()), ssize_t(kThree.size()));
  close(producer);
  const Outcome outcome = Ctl({"import"}, {.daemon = Accept, .in_fd = input});
  close(input);
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("delayctl: line 4: the input cannot be read"));
  EXPECT_THAT(outcome.err, HasSubstr("resume with --skip 3"));
}

TEST(ImportVerbTest, WhatDidNotBeginIsNotResumed) {
  const Outcome outcome = Ctl({"import"}, {.daemon = Accept, .input = "{\"delay\":90}\n"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("run it again from the first"));
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("--skip")));
}

TEST(ImportVerbTest, ContinueLeavesBadLinesOutAndExitsWith1) {
  const Outcome outcome = Ctl({"import", "--continue"},
                              {.daemon = Accept, .input = kThree + "{\"delay\":90}\n" + kThree});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("imported 6 jobs"));
  EXPECT_THAT(outcome.err, HasSubstr("bad lines left out: 1"));
}

TEST(ImportVerbTest, SkipBeginsBehindThatManyLines) {
  const Outcome outcome = Ctl({"import", "--skip", "2", "-q"}, {.daemon = Accept, .input = kThree});
  EXPECT_EQ(outcome.out, "100\n");
  EXPECT_THAT(outcome.requests.at(0).body, HasSubstr("\"payload\":\"c\""));
}

TEST(ImportVerbTest, NoBarIsDrawnAmongTheIds) {
  const auto bar_with = [](std::vector<std::string> args) {
    args.insert(args.begin(), {"import", "--batch", "1"});
    return Ctl(args,
               {.daemon = Accept, .input = kThree, .traits = kTerminal, .call_takes = Millis(200)})
        .err;
  };
  EXPECT_THAT(bar_with({}), HasSubstr("\r\x1b[K1 jobs"));
  EXPECT_EQ(bar_with({"-q"}), "");
}

TEST(ImportVerbTest, SkipBehindTheEndIsRefused) {
  const Outcome all = Ctl({"import", "--skip", "3"}, {.daemon = Accept, .input = kThree});
  EXPECT_EQ(all.code, 0) << all.err;
  const Outcome beyond = Ctl({"import", "--skip", "4"}, {.daemon = Accept, .input = kThree});
  EXPECT_EQ(beyond.code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("the input ends behind line 3"));
  EXPECT_THAT(beyond.err, ::testing::Not(HasSubstr("resume")));
}

TEST(ImportVerbTest, AnInterruptSaysWhereToResume) {
  const Outcome outcome = Ctl({"import", "--batch", "2"},
                              {.daemon =
                                   [](const Request& request) {
                                     raise(SIGINT);
                                     return Accept(request);
                                   },
                               .input = kThree});
  EXPECT_EQ(outcome.code, kExitInterrupted);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted; the lines up to 2 are enqueued"));
}

TEST(ImportVerbTest, AnInterruptThatIsIgnoredEndsNothing) {
  const auto interrupted = [](const Request& request) {
    raise(SIGINT);
    return Accept(request);
  };
  const Outcome outcome = Ctl({"import", "--batch", "2"},
                              {.daemon = interrupted, .input = kThree, .ignores_interrupt = true});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.requests.size(), 2U);
}

TEST(ImportVerbTest, AnInterruptLeavesNoEnqueuedJobUntold) {
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    lines += R"({"key":"k)" + std::to_string(i) + "\"}\n";
  }
  bool raised = false;
  const auto interrupted_once = [&raised](const Request& request) {
    if (!std::exchange(raised, true)) {
      raise(SIGINT);
    }
    return Accept(request);
  };
  const Outcome outcome =
      Ctl({"import", "-q", "--batch", "1"}, {.daemon = interrupted_once, .input = lines});
  EXPECT_EQ(outcome.code, kExitInterrupted);
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), std::ssize(outcome.requests));
}

TEST(ImportVerbTest, AnInterruptWhileTheDaemonHangsIsNotFollowedByAWait) {
  const auto hang = [](const Request& request) {
    raise(SIGINT);
    pollfd given_up{.fd = request.give_up_fd, .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&given_up, 1, 0), 1);
    return Answer(Unknown("no answer", "timed_out"));
  };
  const Outcome outcome = Ctl({"import"}, {.daemon = hang, .input = "{\"key\":\"k\"}\n"});
  EXPECT_EQ(outcome.code, kExitInterrupted);
  EXPECT_THAT(outcome.err, HasSubstr("delayctl: interrupted; no line is known to be enqueued"));
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("trying for")));
}

TEST(ImportVerbTest, AnInterruptDoesNotHideAnUnknownOutcome) {
  const Outcome outcome = Ctl({"import"},
                              {.daemon =
                                   [](const Request&) {
                                     raise(SIGINT);
                                     return Answer(Unknown("lost", "outcome_unknown"));
                                   },
                               .input = kThree});
  EXPECT_EQ(outcome.code, kExitInterrupted);
  EXPECT_THAT(outcome.err, HasSubstr("lines 1 to 3 may or may not be enqueued"));
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("interrupted; the lines up to")));
}

TEST(ImportVerbTest, ATerminalAsInputIsRefusedInsteadOfWaitedFor) {
  const Outcome outcome = Ctl({"import"}, {.daemon = Accept, .in_is_terminal = true});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("stdin is a terminal"));
}

TEST(ImportVerbTest, WhatASilentPipeHasGivenIsSent) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  std::promise<void> sent;
  std::thread producer([&] {
    const std::string begun = kThree + "{\"payload\":";
    EXPECT_EQ(write(ends[1], begun.data(), begun.size()), ssize_t(begun.size()));
    EXPECT_EQ(sent.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
    EXPECT_EQ(write(ends[1], "\"d\"}\n", 5), 5);
    close(ends[1]);
  });
  const Outcome outcome = Ctl({"import"},
                              {.daemon =
                                   [&, first = true](const Request& request) mutable {
                                     if (first) {
                                       sent.set_value();
                                     }
                                     first = false;
                                     return Accept(request);
                                   },
                               .in_fd = ends[0]});
  producer.join();
  close(ends[0]);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(outcome.requests.size(), 2U);
  EXPECT_EQ(std::ranges::count(outcome.requests[0].body, '\n'), 3);
}

TEST(ImportVerbTest, BatchesOfAFileAreFull) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) {
    lines += "{\"payload\":\"" + std::string(1000, 'x') + "\"}\n";
  }
  const test::TempDir dir;
  test::WriteFile(dir.Sub("jobs"), lines);
  EXPECT_EQ(Ctl({"import", dir.Sub("jobs")}, {.daemon = Accept}).requests.size(), 2U);
}

TEST(ImportVerbTest, TheAckLogHasALineForEachAcknowledgedJob) {
  const test::TempDir dir;
  const std::string path = dir.Sub("acks");
  const Outcome outcome =
      Ctl({"import", "--ack-log", path}, {.daemon = Accept, .input = kThree + "{"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(test::ReadFile(path),
            "{\"line\":1,\"id\":100,\"key\":\"order:1001\",\"existed\":false}\n"
            "{\"line\":2,\"id\":101,\"key\":\"order:1001\",\"existed\":false}\n"
            "{\"line\":3,\"id\":102,\"key\":\"order:1001\",\"existed\":false}\n");
}

TEST(ImportVerbTest, TheAckLogGoesOnBehindHalfALineWithALineOfItsOwn) {
  const test::TempDir dir;
  const std::string path = dir.Sub("acks");
  const std::string line = "{\"line\":1,\"id\":100,\"key\":\"order:1001\",\"existed\":false}\n";
  for (const auto& [before, between] :
       {std::pair("{\"line\":1,\"i", "\n"), std::pair("{\"line\":1}\n", ""), std::pair("", "")}) {
    test::WriteFile(path, before);
    EXPECT_EQ(Ctl({"import", "--ack-log", path}, {.daemon = Accept, .input = "{}\n"}).code, 0);
    EXPECT_EQ(test::ReadFile(path), std::string(before) + between + line);
  }
}

TEST(ImportVerbTest, WhatBelongsToLinesIsRefusedBesideBeanstalkd) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"jobs.jsonl"}, {"--skip", "1"}, {"--batch", "1"}, {"--continue"}}) {
    std::vector<std::string> args = {"import", "--from-beanstalkd", "unix:/nonexistent"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = Ctl(args, {.daemon = Accept});
    EXPECT_EQ(outcome.code, 2) << more[0];
    EXPECT_THAT(outcome.err, HasSubstr("--from-beanstalkd takes no FILE")) << more[0];
  }
}

}  // namespace
}  // namespace delayd::cli
