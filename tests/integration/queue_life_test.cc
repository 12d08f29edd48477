// Queues and jobs under an operator's hand: kick, pause, resume, touch, caps, reload.
#include <csignal>

#include <gtest/gtest.h>

#include "tests/support/daemon.h"

namespace delayd::test {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(QueueLifeTest, KickRevivesDeadJobsAndHurriesScheduledOnes) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "--key", "k", "x"});
  daemon.CtlOk({"bury", daemon.LeaseOne("q"), "--error", "no use"});
  EXPECT_TRUE(Contains(daemon.CtlOk({"show", id, "-o", "json"}), R"("state":"dead")"));
  EXPECT_TRUE(Contains(daemon.CtlOk({"kick", id}), "it is ready"));
  EXPECT_EQ(daemon.Ctl({"kick", id}).exit_code, 4);
  EXPECT_EQ(daemon.Ctl({"kick", "4711"}).exit_code, 3);
  daemon.CtlOk({"bury", daemon.LeaseOne("q")});
  daemon.CtlOk({"kick", "--queue", "q", "--key", "k"});
  const std::string far = daemon.CtlOk({"enqueue", "--in", "5h", "--queue", "q", "y"});
  EXPECT_TRUE(Contains(daemon.CtlOk({"kick", "--queue", "q", "--count", "10"}), "kicked 1 job "));
  EXPECT_TRUE(Contains(daemon.CtlOk({"show", far, "-o", "json"}), R"("kicks":1)"));
  EXPECT_TRUE(Contains(daemon.CtlOk({"kick", "--queue", "q", "--count", "3000", "-o", "json"}),
                       R"("kicked":0)"));
  // By filter; nobody is there to be asked.
  daemon.CtlOk({"bury", daemon.LeaseOne("q")});
  EXPECT_EQ(daemon.Ctl({"kick", "--queue", "q"}).exit_code, 2);
  EXPECT_EQ(daemon.Ctl({"kick", "--queue", "q", "--state", "dead", "--count", "1"}).exit_code, 2);
  EXPECT_TRUE(
      Contains(daemon.CtlOk({"kick", "--queue", "q", "--state", "dead", "--yes"}), "kicked 1 job"));
}

TEST(QueueLifeTest, APauseHoldsOverARestartUntilItIsResumed) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  EXPECT_EQ(daemon.Ctl({"pause", "typo"}).exit_code, 3);
  EXPECT_TRUE(Contains(daemon.CtlOk({"pause", "q"}), "paused until it is resumed"));
  daemon.Kill();
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.Ctl({"lease", "--queue", "q"}).exit_code, 6);
  EXPECT_TRUE(Contains(daemon.CtlOk({"queues", "q", "-o", "json"}), R"("paused":true)"));
  EXPECT_TRUE(Contains(daemon.CtlOk({"resume", "q"}), "hands out again"));
  daemon.CtlOk({"ack", daemon.LeaseOne("q")});
}

TEST(QueueLifeTest, ATimedPauseEndsByItself) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"pause", "q", "--for", "1h", "--create"});
  daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  EXPECT_TRUE(Contains(daemon.CtlOk({"queues", "q", "-o", "jsonl"}), R"("pause_left":"59m)"));
  EXPECT_EQ(daemon.Ctl({"lease", "--queue", "q"}).exit_code, 6);
  EXPECT_TRUE(Contains(daemon.CtlOk({"pause", "q", "--for", "300ms", "-o", "json"}), "paused"));
  daemon.CtlOk({"ack", daemon.LeaseOne("q")});
}

TEST(QueueLifeTest, TouchStartsTheDelayAgainAndGivesDefiniteAnswers) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--in", "1h", "--queue", "q", "--key", "k", "x"});
  daemon.CtlOk({"reschedule", id, "--in", "30m"});
  const std::string touched = daemon.CtlOk({"touch", "--queue", "q", "--key", "k"});
  EXPECT_TRUE(Contains(touched, "is due in 1h") || Contains(touched, "is due in 59m")) << touched;
  EXPECT_EQ(daemon.CtlOk({"touch", id, "-q"}), id);
  const std::string at =
      daemon.CtlOk({"enqueue", "--at", "2100-01-01T00:00:00Z", "--queue", "q", "y"});
  EXPECT_EQ(daemon.Ctl({"touch", at}).exit_code, 4);
  EXPECT_EQ(daemon.Ctl({"touch", "--queue", "q", "--key", "nobody"}).exit_code, 3);
  daemon.CtlOk({"kick", id});
  const std::string token = daemon.LeaseOne("q");
  EXPECT_EQ(daemon.Ctl({"touch", id}).exit_code, 4);
  daemon.CtlOk({"ack", token});
  const ProcessResult finished = daemon.Ctl({"touch", "--queue", "q", "--key", "k"});
  EXPECT_EQ(finished.exit_code, 4);
  EXPECT_TRUE(Contains(finished.err, "was acked at 20")) << finished.err;
}

TEST(QueueLifeTest, ShowTellsTheStoryOfAJob) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "x"});
  daemon.CtlOk({"nack", daemon.LeaseOne("q"), "--delay", "0s", "--error", "no connection"});
  const std::string token = daemon.LeaseOne("q");
  const std::string json = daemon.CtlOk({"show", id, "-o", "json"});
  EXPECT_TRUE(Contains(json, R"("event":"nacked")")) << json;
  EXPECT_TRUE(Contains(json, R"("error":"no connection")")) << json;
  EXPECT_TRUE(Contains(json, R"("client":")")) << json;
  const std::string card = daemon.CtlOk({"show", id});
  EXPECT_TRUE(Contains(card, "nacked by ")) << card;
  daemon.CtlOk({"ack", token});
}

TEST(QueueLifeTest, AReloadAppliesCapsAndAMistakeChangesNothing) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start(
      {"--config", daemon.Write("delayd.yaml", "queues: { q: { concurrency: 1 } }\n")}));
  daemon.CtlOk({"enqueue", "--queue", "q", "a"});
  daemon.CtlOk({"enqueue", "--queue", "q", "b"});
  daemon.LeaseOne("q");
  EXPECT_EQ(daemon.Ctl({"lease", "--queue", "q"}).exit_code, 6);
  EXPECT_TRUE(Contains(daemon.CtlOk({"queues"}), "1 leased"));

  daemon.Write("delayd.yaml", "queues: { q: { concurrency: many } }\n");
  daemon.Signal(SIGHUP);
  daemon.WaitForLog("not reloaded");
  EXPECT_EQ(daemon.Ctl({"lease", "--queue", "q"}).exit_code, 6);

  daemon.Write("delayd.yaml", "queues: { q: { concurrency: 2 } }\nlog: { level: debug }\n");
  daemon.Signal(SIGHUP);
  daemon.CtlOk({"ack", daemon.LeaseOne("q")});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

// A second look finds nothing there, and nothing would be the defaults.
TEST(QueueLifeTest, AReloadDoesNotReadAPipeASecondTime) {
  Daemon daemon;
  const std::string pipe = daemon.Path("pipe");
  // $3 is the argument of --config.
  daemon.Under("mkfifo \"$3\" && (echo 'queues: { q: { concurrency: 1 } }' > \"$3\" &)");
  ASSERT_TRUE(daemon.Start({"--config", pipe}));
  daemon.Signal(SIGHUP);
  daemon.WaitForLog("not reloaded");
  EXPECT_TRUE(Contains(daemon.log(), "was a pipe, which can be read once"));
  daemon.CtlOk({"enqueue", "--queue", "q", "a"});
  daemon.CtlOk({"enqueue", "--queue", "q", "b"});
  daemon.LeaseOne("q");
  EXPECT_EQ(daemon.Ctl({"lease", "--queue", "q"}).exit_code, 6);
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

}  // namespace
}  // namespace delayd::test
