#include "cli/handler.h"

#include <signal.h>

#include <gtest/gtest.h>

#include "base/clock.h"

namespace delayd::cli {
namespace {

class HandlerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  Status Start(const std::string& script, std::string payload = {}) {
    return handler_.Start({"sh", "-c", script}, {"DELAYD_JOB_ID=42"}, std::move(payload));
  }

  Handler::Event AwaitExit() { return handler_.Wait(BootTime::max(), -1); }

  Handler handler_;
};

TEST_F(HandlerTest, GetsItsPayloadAndEnvironmentAndItsErrorsAreKept) {
  ASSERT_TRUE(Start("cat >&2; echo \" $DELAYD_JOB_ID\" >&2; exit 3", "hello").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kExited);
  EXPECT_EQ(handler_.exit_code(), 3);
  EXPECT_EQ(handler_.error_tail(), "hello 42\n");
}

TEST_F(HandlerTest, ALargePayloadPassesWholeThroughThePipe) {
  ASSERT_TRUE(Start("wc -c >&2", std::string(3'000'000, 'x')).ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kExited);
  EXPECT_EQ(handler_.error_tail(), "3000000\n");
}

TEST_F(HandlerTest, APayloadThatIsNotReadDoesNotMatter) {
  ASSERT_TRUE(Start("exit 0", std::string(3'000'000, 'x')).ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kExited);
  EXPECT_EQ(handler_.exit_code(), 0);
}

TEST_F(HandlerTest, OnlyTheEndOfItsErrorsIsKept) {
  ASSERT_TRUE(Start("head -c 3000 /dev/zero | tr '\\0' x >&2; echo end >&2").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kExited);
  EXPECT_EQ(handler_.error_tail().size(), 2048U);
  EXPECT_TRUE(handler_.error_tail().ends_with("xend\n"));
}

TEST_F(HandlerTest, AChildThatOutlivesItDoesNotHoldTheWorker) {
  ASSERT_TRUE(Start("sleep 1000 & echo $! >&2; exit 0").ok());
  EXPECT_EQ(AwaitExit(), Handler::Event::kExited);
  kill(static_cast<pid_t>(std::stol(handler_.error_tail())), SIGKILL);
}

TEST_F(HandlerTest, ASignalReachesTheWholeGroup) {
  // The shell waits for its child: only a signal to both ends this.
  ASSERT_TRUE(Start("sleep 1000; exit 0").ok());
  handler_.Signal(SIGTERM);
  EXPECT_EQ(AwaitExit(), Handler::Event::kExited);
  EXPECT_EQ(handler_.exit_code(), -1);
  EXPECT_EQ(handler_.term_signal(), SIGTERM);
}

TEST_F(HandlerTest, TheDeadlineComesBeforeTheExit) {
  ASSERT_TRUE(Start("sleep 1000").ok());
  EXPECT_EQ(handler_.Wait(SystemClock().Sample().boot + Millis(1), -1), Handler::Event::kDeadline);
  handler_.Signal(SIGKILL);
  EXPECT_EQ(AwaitExit(), Handler::Event::kExited);
  EXPECT_EQ(handler_.term_signal(), SIGKILL);
}

TEST_F(HandlerTest, ACommandThatIsNotThereIsSaidToBeSo) {
  const Status status = handler_.Start({"/nonexistent/handler"}, {}, "");
  EXPECT_EQ(
      status.message(),
      "cannot run '/nonexistent/handler': No such file or directory; check its path and rights");
}

}  // namespace
}  // namespace delayd::cli
