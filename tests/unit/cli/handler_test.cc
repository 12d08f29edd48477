#include "cli/handler.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "cli/job_handler.h"
#include "tests/support/files.h"
#include "tests/support/refused_call.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/cli/stuck_errors.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace delayd::cli {
namespace {

class HandlerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  Status Start(const std::string& script, std::string payload = {}) {
    return handler_.Start({"sh", "-c", script}, {"DELAYD_JOB_ID=42"}, std::move(payload));
  }

  Handler::Event AwaitExit() { return handler_.Wait(BootTime::max(), -1); }

  void AwaitErrors(const std::string& errors) {
    while (handler_.error_tail() != errors) {
      ASSERT_EQ(handler_.Wait(SystemClock().Sample().boot + Millis(1), -1),
                Handler::Event::kDeadline);
    }
  }

  Handler handler_;
};

TEST_F(HandlerTest, GetsItsPayloadAndEnvironmentAndItsErrorsAreKept) {
  ASSERT_TRUE(Start("cat >&2; echo \" $DELAYD_JOB_ID\" >&2; exit 3", "hello").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(handler_.exit_code(), 3);
  EXPECT_EQ(handler_.error_tail(), "hello 42\n");
}

TEST_F(HandlerTest, ALargePayloadPassesWholeThroughThePipe) {
  ASSERT_TRUE(Start("wc -c >&2", std::string(3'000'000, 'x')).ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(handler_.error_tail(), "3000000\n");
}

TEST_F(HandlerTest, APayloadThatIsNotReadDoesNotMatter) {
  ASSERT_TRUE(Start("exit 0", std::string(3'000'000, 'x')).ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(handler_.exit_code(), 0);
}

TEST_F(HandlerTest, AClosedPipeEndsItThoughTheWorkerIgnoresThat) {
  ASSERT_TRUE(Start("kill -PIPE $$; exit 3").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(handler_.term_signal(), SIGPIPE);
}

TEST_F(HandlerTest, OnlyTheEndOfItsErrorsIsKept) {
  ASSERT_TRUE(Start("head -c 3000 /dev/zero | tr '\\0' x >&2; echo end >&2").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(handler_.error_tail().size(), 2048U);
  EXPECT_TRUE(handler_.error_tail().ends_with("xend\n"));
}

TEST_F(HandlerTest, AChildThatOutlivesItDoesNotHoldTheWorker) {
  ASSERT_TRUE(Start("sleep 1000 & echo $! >&2; exit 0").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  kill(static_cast<pid_t>(std::stol(handler_.error_tail())), SIGKILL);
}

TEST_F(HandlerTest, ALogThatTakesNothingDoesNotHoldItsEnd) {
  const StuckErrors stuck;
  ASSERT_TRUE(Start("echo why >&2; exit 3").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(handler_.error_tail(), "why\n");
}

TEST_F(HandlerTest, ALogThatTakesNothingDoesNotHoldItsEndForHalfALine) {
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Start("printf half >&2; exec tail -f /dev/null").ok());
  AwaitErrors("half");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "another's line may come";
  const StuckErrors stuck;
  handler_.End(Millis(10'000));
  EXPECT_EQ(handler_.term_signal(), SIGTERM);
}

TEST_F(HandlerTest, ALogThatTakesNothingHoldsTheHandlerAndNotTheDeadline) {
  const StuckErrors stuck;
  ASSERT_TRUE(Start("head -c 100000 /dev/zero >&2; echo end >&2").ok());
  const BootTime soon = SystemClock().Sample().boot + Millis(20);
  EXPECT_EQ(handler_.Wait(soon, -1), Handler::Event::kDeadline);
  // With somebody who reads, it goes on where it was.
  while (handler_.Wait(SystemClock().Sample().boot + Millis(1), -1) != Handler::Event::kDone) {
    stuck.ReadAll();
  }
  EXPECT_TRUE(handler_.error_tail().ends_with("end\n"));
}

TEST_F(HandlerTest, NothingComesIntoItsLines) {
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Start("trap 'echo line >&2; printf end >&2; exit' URG; printf 'whole\\na ' >&2; "
                    "while :; do sleep 0.01; done")
                  .ok());
  AwaitErrors("whole\na ");
  EXPECT_EQ(write(STDERR_FILENO, "another\n", 8), 8);
  handler_.Signal(SIGURG);  // which what the shell ran does not mind
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "whole\nanother\na line\nend\n");
}

TEST_F(HandlerTest, ALineWithoutEndIsPassedOnInParts) {
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Start("head -c 100000 /dev/zero | tr '\\0' x >&2").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), std::string(100'000, 'x') + '\n');
}

TEST_F(HandlerTest, ASignalReachesTheWholeGroup) {
  // The shell waits for its child: only a signal to both ends this.
  ASSERT_TRUE(Start("sleep 1000; exit 0").ok());
  handler_.Signal(SIGTERM);
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(handler_.exit_code(), -1);
  EXPECT_EQ(handler_.term_signal(), SIGTERM);
}

// Else who reads it is stopped for ever, in a group that is not the terminal's.
TEST_F(HandlerTest, HasNoTerminal) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const bool exited =
        Start("read line </dev/tty").ok() &&
        handler_.Wait(SystemClock().Sample().boot + Millis(60'000), -1) == Handler::Event::kDone;
    handler_.Signal(SIGKILL);
    _exit(exited && handler_.exit_code() > 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(terminal);
}

TEST_F(HandlerTest, WhatAShellRanGetsTheGraceThoughTheShellGoesAtOnce) {
  ASSERT_TRUE(Start("(trap 'sleep 0.1; echo tidied >&2; exit' TERM; echo ready >&2; "
                    "while :; do sleep 0.01; done) & wait")
                  .ok());
  AwaitErrors("ready\n");
  handler_.End(Millis(60'000));
  EXPECT_EQ(handler_.term_signal(), SIGTERM);
  // Before it, some shells tell that their sleep was ended.
  EXPECT_TRUE(handler_.error_tail().ends_with("tidied\n")) << handler_.error_tail();
}

TEST_F(HandlerTest, TheFirstProcessOfAContainerTakesTheDeadOfTheGroup) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  ASSERT_TRUE(Start("(echo ready >&2; exec sleep 1000) & wait").ok());
  AwaitErrors("ready\n");
  handler_.End(std::chrono::hours(1));  // else it would wait for all of it
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(HandlerTest, WhatIsLeftOfTheGroupAfterTheGraceIsKilled) {
  std::array<int, 2> ends{};  // whoever lives holds it open
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_TRUE(Start("sh -c 'trap \"\" TERM; echo ready >&2; sleep 1000' & wait").ok());
  close(ends[1]);
  AwaitErrors("ready\n");
  handler_.End(Millis(50));
  EXPECT_EQ(handler_.term_signal(), SIGTERM);
  pollfd entry{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&entry, 1, 60'000), 1);
  close(ends[0]);
}

TEST_F(HandlerTest, ThatItMayNotBeEndedIsToldWhileItIsWaitedFor) {
  const test::TempDir dir;
  const std::string fifo = dir.Sub("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int word = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    const bool started =
        test::RefuseCall(SYS_kill, EPERM) && Start("read line <'" + fifo + "'").ok();
    handler_.End(Millis(0));
    _exit(started && handler_.exit_code() == 0 ? 0 : 1);
  }
  close(ends[1]);
  pollfd entry{.fd = ends[0], .events = POLLIN, .revents = 0};
  std::array<char, 512> told{};
  EXPECT_EQ(poll(&entry, 1, 60'000), 1);
  EXPECT_GT(entry.revents == 0 ? 0 : read(ends[0], told.data(), told.size() - 1), 0);
  EXPECT_TRUE(std::string_view(told.data()).find("cannot be ended") != std::string_view::npos)
      << told.data();
  EXPECT_EQ(write(word, "\n", 1), 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(ends[0]);
  close(word);
}

TEST_F(HandlerTest, TheDeadlineComesBeforeTheExit) {
  ASSERT_TRUE(Start("sleep 1000").ok());
  EXPECT_EQ(handler_.Wait(SystemClock().Sample().boot + Millis(1), -1), Handler::Event::kDeadline);
  handler_.Signal(SIGKILL);
  EXPECT_EQ(AwaitExit(), Handler::Event::kDone);
  EXPECT_EQ(handler_.term_signal(), SIGKILL);
}

TEST_F(HandlerTest, ACommandThatIsNotThereIsSaidToBeSo) {
  const Status status = handler_.Start({"/nonexistent/handler"}, {}, "");
  EXPECT_EQ(status.message(),
            "cannot run '/nonexistent/handler': No such file or directory; check its path, its "
            "rights and, of a script, its first line (#!/bin/sh)");
  EXPECT_EQ(status.reason(), kCannotRun);
}

TEST_F(HandlerTest, AScriptThatNothingCanRunIsToldFromOneThatCannotBeStartedNow) {
  const test::TempDir dir;
  const std::string path = dir.Sub("handler");
  test::WriteFile(path, "");
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  for (const char* first_line : {"exit 0\n", "#!/nonexistent/interpreter\n", "#!/tmp\n"}) {
    test::WriteFile(path, first_line);
    EXPECT_EQ(handler_.Start({path}, {}, "").reason(), kCannotRun) << first_line;
  }
  EXPECT_EQ(handler_.Start({path + "/handler"}, {}, "").reason(), kCannotRun);
  const std::string too_long(size_t{1} << 20, 'x');
  EXPECT_EQ(handler_.Start({"true", too_long}, {}, "").reason(), kJobTooLarge);
}

}  // namespace
}  // namespace delayd::cli
