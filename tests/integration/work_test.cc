// `delayctl work --exec`: a handler's exit code decides what becomes of its job.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/rocks_job_store.h"
#include "tests/support/daemon.h"
#include "tests/support/http_receiver.h"

#include <sys/stat.h>

namespace delayd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(WorkTest, PayloadComesOnStdinAndTheRestInTheEnvironment) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "--key", "k:1", "hello 'world'"});
  const std::string out = daemon.Path("out");
  daemon.CtlOk(
      {"work",
       "--queue",
       "q",
       "--count",
       "1",
       "--exec",
       "sh",
       "-c",
       R"sh(echo "$DELAYD_JOB_ID $DELAYD_QUEUE $DELAYD_KEY $DELAYD_ATTEMPT/$DELAYD_MAX_ATTEMPTS $(cat)" > "$0")sh",
       out});
  EXPECT_EQ(ReadFile(out), id + " q k:1 1/25 hello 'world'\n");
  EXPECT_EQ(daemon.CtlOk({"list", "--queue", "q", "-q"}), "");
}

TEST(WorkTest, AFailedHandlerIsTriedAgainUntilItsAttemptsAreUsedUp) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "--max-attempts", "1", "x"});
  daemon.Ctl({"work",
              "--queue",
              "q",
              "--count",
              "1",
              "--exec",
              "sh",
              "-c",
              "echo no such order >&2; exit 3"});
  const std::string shown = daemon.CtlOk({"show", id, "-o", "json"});
  EXPECT_THAT(shown, HasSubstr("\"dead\""));
  EXPECT_THAT(shown, HasSubstr("no such order"));
}

TEST(WorkTest, ExitCode100Buries) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  daemon.Ctl({"work", "--queue", "q", "--count", "1", "--exec", "sh", "-c", "exit 100"});
  EXPECT_THAT(daemon.CtlOk({"show", id, "-o", "json"}), HasSubstr("\"dead\""));
}

TEST(WorkTest, WhatIsToldOfAJobBeginsALineWhateverItsHandlerWrote) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  int jobs = 0;
  const auto told_after = [&](const std::string& handler, const std::string& timeout) {
    const std::string queue = "q" + std::to_string(++jobs);
    daemon.CtlOk({"enqueue", "--queue", queue, "x"});
    return daemon
        .Ctl({"work",
              "--queue",
              queue,
              "-n",
              "1",
              "--handler-timeout",
              timeout,
              "--exec",
              "sh",
              "-c",
              handler})
        .err;
  };
  EXPECT_THAT(told_after("printf half >&2", "1m"), StartsWith("half\njob 1 "));
  EXPECT_THAT(told_after("echo whole >&2", "1m"), StartsWith("whole\njob 2 "));
  // On a busy machine a handler may have written nothing in a second.
  std::string told;
  for (const char* timeout : {"1s", "5s", "30s"}) {
    told = told_after("printf half >&2; exec sleep 1000", timeout);
    if (told.starts_with("half")) {
      break;
    }
  }
  EXPECT_THAT(told, StartsWith("half\njob " + std::to_string(jobs) + " "));
}

// A parent that ignores SIGCHLD hands that on, and the kernel throws exit statuses away then.
TEST(WorkTest, AFailedHandlerIsNotAckedUnderAParentThatIgnoresItsChildren) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  const std::string config = daemon.Write("bad.yaml", "nonsense: 1\n");
  const auto ctl = [&](const std::vector<std::string>& args) {
    ProcessOptions options = daemon.CtlOptions(args);
    options.argv.insert(options.argv.begin(), {"/usr/bin/env", "--ignore-signal=CHLD"});
    return RunProcess(options);
  };
  const ProcessResult work =
      ctl({"work", "--queue", "q", "--count", "1", "--exec", "sh", "-c", "sleep 0.1; exit 3"});
  EXPECT_THAT(work.err, HasSubstr("nack (exit 3)"));
  EXPECT_THAT(daemon.CtlOk({"show", id, "-o", "json"}), HasSubstr("exit 3"));
  EXPECT_EQ(ctl({"config", "check", config}).exit_code, 2);
}

TEST(WorkTest, AWorkerWhoseLogMayNotGrowGoesOnWithItsJobs) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  ProcessOptions options = daemon.CtlOptions(
      {"work", "--queue", "q", "--count", "2", "--exec", "sh", "-c", "printf %05000d 0 >&2"});
  options.argv.insert(options.argv.begin(), {"/bin/sh", "-c", "ulimit -f 4; exec \"$@\"", "sh"});
  const ProcessResult work = RunProcess(options);
  EXPECT_EQ(work.exit_code, 0) << "signal " << work.signal;
  EXPECT_EQ(daemon.CtlOk({"list", "--queue", "q", "-q"}), "");
}

TEST(WorkTest, ALongHandlerKeepsItsLease) {
  // Where the worker or the daemon is not run for a while, a short lease may be over before it is
  // extended.
  std::string stats;
  for (const int lease : {2, 8, 30}) {
    Daemon daemon;
    ASSERT_TRUE(daemon.Start());
    const std::string seconds = std::to_string(lease);
    daemon.CtlOk({"enqueue", "--queue", "q", "--lease", seconds + "s", "x"});
    // Runs for longer than that: only an extended lease can be acked.
    daemon.Ctl({"work", "--queue", "q", "--count", "1", "--exec", "sleep", seconds + ".2"});
    // The worker may have given it up before the daemon does.
    const bool acked = daemon.CtlOk({"list", "--queue", "q", "-q"}).empty();
    stats = daemon.CtlOk({"stats", "-o", "json"});
    if (acked && stats.find("\"lease_expired\":0") != std::string::npos) {
      return;
    }
  }
  ADD_FAILURE() << stats;
}

// A restart ends all leases: a free slot gets the job that another one is at.
TEST(WorkTest, AJobThatIsHandedOutAgainWaitsForItsEarlierHandler) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  const std::string at_it = daemon.Path("at_it");
  // The second time it does not wait, and fails where the first one is at it still.
  Process work(
      daemon.CtlOptions({"work",
                         "--queue",
                         "q",
                         "-j",
                         "2",
                         "-n",
                         "2",
                         "--exec",
                         "bash",
                         "-c",
                         "trap 'sleep 0.1; rmdir \"$0\"; exit 3' TERM; mkdir \"$0\" || exit 4; "
                         "if [ -e \"$0.1\" ]; then rmdir \"$0\"; exit; fi; touch \"$0.1\"; "
                         "for i in {1..600}; do sleep 0.1; done",
                         at_it}));
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(at_it + ".1"); }));
  daemon.Kill();
  ASSERT_TRUE(daemon.Start());
  const ProcessResult worked = work.Wait();
  EXPECT_THAT(worked.err, HasSubstr(": lease lost, handler stopped"));
  EXPECT_THAT(worked.err, HasSubstr(": ack after"));
}

TEST(WorkTest, ManySlotsGetTheFilesThatTheyNeedOrAreRefused) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += "{\"queue\":\"q\"}\n";
  }
  daemon.CtlOk({"import", "-"}, lines);
  const auto work_under = [&](const std::string& limit) {
    ProcessOptions options = daemon.CtlOptions(
        {"work", "--queue", "q", "-j", "40", "--count", "40", "--exec", "sleep", "0.2"});
    options.argv.insert(options.argv.begin(), {"/bin/sh", "-c", limit + "; exec \"$0\" \"$@\""});
    return RunProcess(options);
  };
  const ProcessResult refused = work_under("ulimit -n 64");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("needs 312 open files, and no more than 64 are allowed"));
  const ProcessResult worked = work_under("ulimit -S -n 64");
  EXPECT_EQ(worked.exit_code, 0);
  EXPECT_THAT(worked.err, ::testing::Not(HasSubstr("Too many open files")));
  EXPECT_EQ(daemon.CtlOk({"list", "--queue", "q", "-q"}), "");
}

TEST(WorkTest, AWebhookIsCalledSignedAndItsAnswerDecides) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  HttpReceiver receiver([](const ReceivedRequest& request) {
    return request.body == "gone" ? HttpAnswer(410) : HttpAnswer(200);
  });
  const std::string secret = daemon.Write("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
  const std::string taken = daemon.CtlOk({"enqueue", "--queue", "q", R"({"order":1001})"});
  const std::string buried = daemon.CtlOk({"enqueue", "--queue", "q", "gone"});
  daemon.CtlOk({"work",
                "--queue",
                "q",
                "--drain",
                "--webhook",
                receiver.url(),
                "--allow-private",
                "--secret-file",
                secret,
                "--content-type",
                "text/plain"});
  const std::vector<ReceivedRequest> requests = receiver.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].body, R"({"order":1001})");
  EXPECT_THAT(requests[0].headers.at("webhook-id"), StartsWith("job_" + taken + "_"));
  EXPECT_EQ(requests[0].headers.at("content-type"), "text/plain");
  EXPECT_THAT(requests[0].headers.at("webhook-signature"), StartsWith("v1,"));
  EXPECT_EQ(daemon.CtlOk({"list", "--queue", "q", "-q"}), "");
  EXPECT_THAT(daemon.CtlOk({"show", buried, "-o", "json"}), HasSubstr("webhook answered 410"));
}

TEST(WorkTest, AWebhookInsideIsRefusedWithoutLosingTheJob) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(200); });
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  const ProcessResult worked = daemon.Ctl({"work", "--queue", "q", "--webhook", receiver.url()});
  EXPECT_EQ(worked.exit_code, 2);
  EXPECT_THAT(worked.err, HasSubstr("start the worker with --allow-private"));
  EXPECT_TRUE(receiver.requests().empty());
  EXPECT_THAT(daemon.CtlOk({"show", id, "-o", "json"}), HasSubstr("\"ready\""));
}

// The first row of its table, so the job that is due first.
void SpoilFirstTimerRow(const std::string& data_dir) {
  auto store = storage::OpenRocksJobStore({.path = data_dir});
  ASSERT_TRUE(store.ok()) << store.status().message();
  storage::Batch batch;
  const auto spoil = [&batch](std::string_view key, std::string_view) {
    batch.Put(storage::Table::kTimers, key, "no record");
    return false;
  };
  ASSERT_TRUE((*store)->Scan(storage::Table::kTimers, std::string(1, '\0'), {}, spoil).ok());
  ASSERT_TRUE((*store)->Commit(batch).ok());
  ASSERT_TRUE((*store)->Close().ok());
}

TEST(WorkTest, P9ADrainEndsThoughADamagedJobIsLeft) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--queue", "q", "--at", "2020-01-01T00:00:00Z", "damaged"});
  const std::string good = daemon.CtlOk({"enqueue", "--queue", "q", "good"});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  SpoilFirstTimerRow(daemon.data_dir());
  ASSERT_TRUE(daemon.Start());
  const ProcessResult worked = daemon.Ctl({"work", "--queue", "q", "--drain", "--exec", "true"});
  EXPECT_EQ(worked.exit_code, 1);
  EXPECT_THAT(worked.err, HasSubstr("job " + good + " attempt 1: ack"));
  EXPECT_THAT(worked.err, HasSubstr("damaged records keep 1 job of queue q from being handed out"));
  EXPECT_THAT(daemon.CtlOk({"queues", "q", "-o", "json"}), HasSubstr("\"damaged\":1"));
}

TEST(WorkTest, WrongUseGetsAHint) {
  Daemon daemon;
  const auto refused = [&](std::vector<std::string> flags, const std::string& hint) {
    flags.insert(flags.begin(), "work");
    const ProcessResult result = daemon.Ctl(flags);
    EXPECT_EQ(result.exit_code, 2) << hint;
    EXPECT_THAT(result.err, HasSubstr(hint));
  };
  refused({}, "give --webhook URL, or end the line with --exec");
  refused({"--webhook", "ftp://x/"}, "neither http nor https");
  refused({"--webhook", "https://a:b@x/"}, "--secret-file");
  refused({"--webhook", "http://x/", "--exec", "true"}, "exclude each other");
  refused({"--allow-private", "--exec", "true"}, "belong to --webhook");
  refused({"--webhook", "http://x/", "--content-type", "a\nb: c"}, "no media type");
  refused({"--webhook", "http://x/", "--content-type", ""}, "'' is no media type");
  refused({"--webhook", "http://x/", "--content-type", " "}, "' ' is no media type");
}

}  // namespace
}  // namespace delayd::test
