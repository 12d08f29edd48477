// Jobs that could not be brought to their handler: they did nothing wrong.
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exec_handler.h"
#include "cli/exit_code.h"
#include "cli/signal_relay.h"
#include "cli/webhook_handler.h"
#include "cli/worker.h"
#include "tests/support/no_threads.h"
#include "tests/support/refused_call.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/worker_scene.h"

#include <sys/syscall.h>

namespace delayd::cli {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

JobView JobInHand(uint64_t id) {
  JobView job = SomeJob(id);
  job.state = JobState::kLeased;
  job.attempt = 1;
  job.lease_token = LeaseToken{job.id, 1, id};
  return job;
}

// Two jobs, and what was done with their leases.
class WorkerStartTest : public WorkerScene {
 protected:
  WorkerStartTest()
      : WorkerScene(clock_, [this](const Request& request) { return Serve(request); }) {}

  Answer Serve(const Request& request) {
    if (request.target == "/v1/queues/orders/lease") {
      protocol::JobPage page;
      if (!jobs_.empty()) {
        page.jobs.push_back(jobs_.front());
        jobs_.pop_front();
      }
      return Ok(protocol::JobPageToJson(page));
    }
    if (request.target == "/v1/queues/orders") {
      return Ok(protocol::QueueToJson({.name = "orders", .ready = 0}));
    }
    calls_.push_back(request.target + " " + request.body);
    times_.push_back(clock_.Sample().boot);
    return Ok(protocol::JobToJson(SomeJob()));
  }

  Status Drain(MakeJobHandler handler, Millis start_retry) {
    Worker worker(&context_,
                  {.queue = "orders",
                   .make_handler = std::move(handler),
                   .drain = true,
                   .poll = Millis(0),
                   .start_retry = start_retry});
    return worker.Run();
  }

  std::deque<JobView> jobs_{JobInHand(1), JobInHand(2)};
  std::vector<std::string> calls_;
  std::vector<BootTime> times_;
  SystemClock clock_;
};

TEST_F(WorkerStartTest, WhatWasIgnoredAtTheStartStopsNoWorker) {
  Worker worker(&context_, {.queue = "orders"});
  for (const int signal_number : {SIGINT, SIGHUP}) {
    for (const bool ignored : {false, true}) {
      const auto before = signal(signal_number, ignored ? SIG_IGN : SIG_DFL);
      const SignalRelay relay(&worker);
      sigset_t taken;
      pthread_sigmask(SIG_SETMASK, nullptr, &taken);
      EXPECT_EQ(sigismember(&taken, signal_number), ignored ? 0 : 1) << signal_number;
      EXPECT_EQ(sigismember(&taken, SIGTERM), 1);
      signal(signal_number, before);
    }
  }
}

class NoMemory final : public JobHandler {
 public:
  StatusOr<std::unique_ptr<JobRun>> Start(const JobView& /*job*/) override {
    return Unavailable("out of memory");
  }
};

TEST_F(WorkerStartTest, JobsAreNotTakenAndGivenBackInARushWhenNoHandlerCanBeStarted) {
  EXPECT_TRUE(Drain([] { return std::make_unique<NoMemory>(); }, Millis(50)).ok());
  ASSERT_THAT(calls_, SizeIs(2));
  EXPECT_THAT(calls_, Each(HasSubstr(R"("delay":"50ms")")));
  EXPECT_THAT(calls_, Each(HasSubstr(R"("counts_as_attempt":false)")));
  EXPECT_GE(times_[1] - times_[0], Millis(49));
}

TEST_F(WorkerStartTest, AWebhooksAddressThatIsRefusedEndsADrainAndUsesNoAttempt) {
  ASSERT_TRUE(CheckWebhookUrl("http://x/", false).ok());
  const Status ended = Drain(WebhookHandler({.url = "http://127.0.0.1:9/"}), Millis(50));
  EXPECT_EQ(ExitCodeOf(ended), kExitFailed);
  EXPECT_THAT(ended.message(), HasSubstr("--allow-private"));
  ASSERT_THAT(calls_, SizeIs(1));
  EXPECT_THAT(calls_[0], HasSubstr(R"("delay":"50ms")"));
  EXPECT_THAT(calls_[0], HasSubstr(R"("counts_as_attempt":false)"));
}

TEST(WorkStartTest, WithoutAThreadForSignalsNoJobIsTaken) {
  const test::NoThreads refused;
  const Outcome ended = Ctl({"work", "--drain", "--exec", "true"});
  EXPECT_EQ(ended.code, kExitFailed);
  EXPECT_THAT(ended.err, HasSubstr("no thread can be started to wait for signals: Resource temp"));
  EXPECT_THAT(ended.err, HasSubstr("allow more processes"));
}

// As where a container's filter of system calls knows it not.
TEST(WorkStartTest, WhereHandlersCannotBeWaitedForNoneIsStarted) {
  const auto work = [](int error) {
    if (!test::RefuseCall(SYS_pidfd_open, error)) {
      std::_Exit(77);
    }
    const Outcome ended = Ctl({"work", "--drain", "--exec", "true"});
    std::fprintf(stderr, "%s", ended.err.c_str());
    std::_Exit(ended.code);
  };
  EXPECT_EXIT(
      work(EPERM),
      ::testing::ExitedWithCode(kExitUsage),
      "^delayctl: cannot wait for commands: pidfd_open: Operation not permitted; .*seccomp");
  EXPECT_EXIT(work(ENOSYS), ::testing::ExitedWithCode(kExitUsage), "Linux 5.3 or later");
}

TEST_F(WorkerStartTest, ACommandThatCannotBeWaitedForEndsADrainAndUsesNoAttempt) {
  const auto drain = [this] {
    if (!test::RefuseCall(SYS_pidfd_open, EPERM)) {
      std::_Exit(77);
    }
    const Status ended = Drain(ExecHandler({"true"}), Millis(50));
    std::fprintf(stderr, "%s %s", ended.message().c_str(), calls_.at(0).c_str());
    std::_Exit(ExitCodeOf(ended));
  };
  EXPECT_EXIT(drain(),
              ::testing::ExitedWithCode(kExitFailed),
              "pidfd_open: .*/nack.*\"counts_as_attempt\":false");
}

TEST_F(WorkerStartTest, ACommandThatCannotBeRunEndsADrainAndUsesNoAttempt) {
  const Status ended = Drain(ExecHandler({"/nonexistent/handler"}), Millis(50));
  EXPECT_EQ(ExitCodeOf(ended), kExitFailed);
  EXPECT_THAT(ended.message(),
              HasSubstr("cannot run '/nonexistent/handler': No such file or directory; check its"));
  ASSERT_THAT(calls_, SizeIs(1));
  EXPECT_THAT(calls_[0], HasSubstr("/nack"));
  EXPECT_THAT(calls_[0], HasSubstr(R"("counts_as_attempt":false)"));
  EXPECT_THAT(jobs_, SizeIs(1));
}

TEST(CheckCommandTest, AnEmptyElementOfPathIsTheCurrentDirectory) {
  const test::TempDir dir;
  std::filesystem::create_symlink("/bin/true", dir.Sub("delayd-test-handler"));
  const std::filesystem::path before = std::filesystem::current_path();
  const std::string path = getenv("PATH");
  std::filesystem::current_path(dir.path());
  for (const std::string& with_empty : {":" + path, path + ":", std::string("/bin::/usr/bin")}) {
    setenv("PATH", with_empty.c_str(), 1);
    EXPECT_TRUE(CheckCommand("delayd-test-handler").ok()) << with_empty;
  }
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(CheckCommand("delayd-test-handler").message(), HasSubstr("no such program in PATH"));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace delayd::cli
