// `delayctl work --exec`: a handler's exit code decides what becomes of its job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/daemon.h"

namespace delayd::testing {
namespace {

using ::testing::HasSubstr;

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
       R"sh(echo "$DELAYD_JOB_ID $DELAYD_QUEUE $DELAYD_KEY $DELAYD_ATTEMPT $(cat)" > )sh" + out});
  EXPECT_EQ(ReadFile(out), id + " q k:1 1 hello 'world'\n");
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

TEST(WorkTest, ALongHandlerKeepsItsLease) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--queue", "q", "--lease", "300ms", "x"});
  // Runs for three leases: only an extended lease can be acked.
  daemon.CtlOk({"work", "--queue", "q", "--count", "1", "--exec", "sleep", "1"});
  EXPECT_THAT(daemon.CtlOk({"stats", "-o", "json"}), HasSubstr("\"lease_expired\":0"));
  EXPECT_EQ(daemon.CtlOk({"list", "--queue", "q", "-q"}), "");
}

}  // namespace
}  // namespace delayd::testing
