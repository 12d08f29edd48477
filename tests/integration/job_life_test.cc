// The whole life of single jobs through the real binaries: history, rules of keys, conditional
// changes, leases over HTTP, caps, and moving jobs to another daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/http_call.h"
#include "tests/support/daemon.h"

namespace delayd::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What a request about a lease is answered with, whose status must be this.
std::string PostToLease(const Daemon& daemon,
                        const std::string& token,
                        const std::string& action,
                        const std::string& body,
                        int status = 200) {
  const protocol::HttpResponse answer =
      HttpCall(daemon, "POST", "/v1/leases/" + token + "/" + action, body);
  EXPECT_EQ(answer.status, status) << answer.body;
  return answer.body;
}

TEST(JobLifeTest, AFinishedJobTellsItsWholeStoryByIdAndByKeyAlsoAfterARestart) {
  Daemon daemon;
  const std::string config =
      daemon.Write("delayd.yaml", "queues: { q: { history_retention: 1d } }\n");
  ASSERT_TRUE(daemon.Start({"--config", config}));
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "--key", "k", "the payload"});
  daemon.CtlOk({"nack", daemon.LeaseOne("q"), "--delay", "0s", "--error", "no connection"});
  daemon.CtlOk({"ack", daemon.LeaseOne("q")});
  const std::string other = daemon.CtlOk({"enqueue", "--in", "1h", "--queue", "q", "z"});
  daemon.CtlOk({"reschedule", other, "--in", "2h"});
  daemon.CtlOk({"cancel", other});
  daemon.Kill();
  ASSERT_TRUE(daemon.Start({"--config", config}));
  for (const auto& ref :
       {std::vector<std::string>{"show", id, "-o", "json"},
        std::vector<std::string>{"show", "--queue", "q", "--key", "k", "-o", "json"}}) {
    EXPECT_THAT(daemon.CtlOk(ref),
                AllOf(HasSubstr(R"("state":"finished")"),
                      HasSubstr(R"("outcome":"acked")"),
                      HasSubstr(R"("event":"nacked")"),
                      HasSubstr(R"("error":"no connection")"),
                      HasSubstr(R"("event":"acked")"),
                      HasSubstr(R"("attempt":2)"),
                      HasSubstr(R"("created":")"),
                      HasSubstr(R"("payload":"the payload")")));
  }
  EXPECT_THAT(daemon.CtlOk({"show", other}),
              AllOf(HasSubstr("moved"), HasSubstr("cancelled"), HasSubstr("finished")));
  EXPECT_THAT(daemon.CtlOk({"list", "--state", "finished", "-q"}),
              AllOf(HasSubstr(id), HasSubstr(other)));
  EXPECT_EQ(daemon.Ctl({"wait", id}).exit_code, 0);
  EXPECT_EQ(daemon.Ctl({"wait", other}).exit_code, 4);
  EXPECT_THAT(daemon.Ctl({"cancel", id}).err, HasSubstr("was acked at 20"));
  daemon.CtlOk({"verify"});
  // Done is done: it is no job to be enqueued again.
  const std::string exported = daemon.CtlOk({"export", "--state", "finished"});
  EXPECT_THAT(exported, HasSubstr("the payload"));
  EXPECT_EQ(daemon.Ctl({"import", "-"}, exported + "\n").exit_code, 2);
}

TEST(JobLifeTest, WithoutHistoryAKeyStillTellsHowItsJobEnded) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "--key", "k", "x"});
  daemon.CtlOk({"ack", daemon.LeaseOne("q")});
  EXPECT_THAT(
      daemon.CtlOk({"show", id}),
      AllOf(HasSubstr("acked"), HasSubstr("history_retention"), Not(HasSubstr("priority"))));
  const ProcessResult payload = daemon.Ctl({"show", id, "-p"});
  EXPECT_EQ(payload.exit_code, 3);
  EXPECT_THAT(payload.err, HasSubstr("is not kept: the queue's history_retention is 0s"));
}

TEST(JobLifeTest, P7EnqueueUnderAKeyThatIsTakenFollowsItsRule) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const auto enqueue = [&daemon](const std::string& rule, const std::string& payload) {
    return daemon.Ctl(
        {"enqueue", "--in", "1h", "--queue", "q", "--key", "k", "--on-conflict", rule, payload});
  };
  const std::string id =
      daemon.CtlOk({"enqueue", "--in", "2h", "--queue", "q", "--key", "k", "first"});
  EXPECT_EQ(enqueue("fail", "second").exit_code, 4);
  EXPECT_EQ(enqueue("keep", "second").out, id + "\n");
  EXPECT_EQ(daemon.CtlOk({"show", id, "-p"}), "first");
  EXPECT_EQ(enqueue("replace", "third").out, id + "\n");
  EXPECT_EQ(daemon.CtlOk({"show", id, "-p"}), "third");
  EXPECT_THAT(daemon.CtlOk({"show", id}), HasSubstr("replaced"));
  daemon.CtlOk({"run", id});
  const std::string token = daemon.LeaseOne("q");
  const ProcessResult leased = enqueue("replace", "fourth");
  EXPECT_EQ(leased.exit_code, 4);
  EXPECT_THAT(leased.err, HasSubstr("leased"));
  daemon.CtlOk({"ack", token});
  const ProcessResult next = enqueue("replace", "third");
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_NE(next.out, id + "\n") << "the finished job is not begun again";
  EXPECT_EQ(enqueue("perhaps", "x").exit_code, 2);
  EXPECT_EQ(daemon.Ctl({"enqueue", "--on-conflict", "keep", "x"}).exit_code, 2);
}

TEST(JobLifeTest, AChangeForOneStateOfAJobIsRefusedWhenItHasChanged) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--in", "1h", "--queue", "q", "x"});
  const std::string etag = Member(daemon.CtlOk({"show", id, "-o", "json"}), "etag");
  daemon.CtlOk({"reschedule", id, "--in", "2h", "--if-match", etag});
  for (const auto& late :
       {std::vector<std::string>{"reschedule", id, "--in", "3h", "--if-match", etag},
        std::vector<std::string>{"cancel", id, "--if-match", etag}}) {
    const ProcessResult result = daemon.Ctl(late);
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_THAT(result.err, HasSubstr("has changed since it was read: it is scheduled"));
  }
  EXPECT_EQ(daemon.Ctl({"cancel", id, "--if-match", "not an etag"}).exit_code, 2);
  EXPECT_EQ(daemon.Ctl({"cancel", "--queue", "q", "--if-match", etag}).exit_code, 2);
  daemon.CtlOk(
      {"cancel", id, "--if-match", Member(daemon.CtlOk({"show", id, "-o", "json"}), "etag")});
}

TEST(JobLifeTest, ANackOverHttpMayLeaveTheAttemptsAndChangeThePriority) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "--max-attempts", "1", "x"});
  const std::string given_back = PostToLease(
      daemon,
      daemon.LeaseOne("q"),
      "nack",
      R"({"delay":"0s","counts_as_attempt":false,"priority":7,"error":"shutting down"})");
  EXPECT_EQ(Member(given_back, "attempt"), "0")
      << "P5: not dead, although one attempt is all it has";
  EXPECT_EQ(Member(given_back, "priority"), "7");
  EXPECT_EQ(Member(given_back, "last_error"), "shutting down");
  // It counts by itself; and a bury may set the priority too.
  EXPECT_EQ(Member(PostToLease(daemon, daemon.LeaseOne("q"), "nack", R"({"delay":"0s"})"), "state"),
            "dead");
  daemon.CtlOk({"kick", id});
  EXPECT_EQ(
      Member(PostToLease(daemon, daemon.LeaseOne("q"), "bury", R"({"priority":9})"), "priority"),
      "9");
  PostToLease(daemon, "1-1-1", "ack", R"({"counts_as_attempt":false})", 400);
}

TEST(JobLifeTest, ARateCapSpacesHandOutsAndTellsNobodyToPoll) {
  Daemon daemon;
  const std::string config =
      daemon.Write("delayd.yaml", "queues: { q: { rate: 2/1h, burst: 2 } }\n");
  ASSERT_TRUE(daemon.Start({"--config", config}));
  for (const char* payload : {"a", "b", "c"}) {
    daemon.CtlOk({"enqueue", "--queue", "q", payload});
  }
  daemon.CtlOk({"ack", daemon.LeaseOne("q")});
  daemon.CtlOk({"ack", daemon.LeaseOne("q")});
  EXPECT_EQ(daemon.Ctl({"lease", "--queue", "q"}).exit_code, 6);
  EXPECT_THAT(daemon.CtlOk({"queues", "q"}), HasSubstr("2/h, 2 at once"));
  EXPECT_THAT(daemon.CtlOk({"queues", "q", "-o", "json"}),
              AllOf(HasSubstr(R"("acked":2)"), HasSubstr(R"("enqueued":3)")));
}

TEST(JobLifeTest, AJobThatNobodyTakesInTimeIsDead) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string late = daemon.CtlOk(
      {"enqueue", "--at", "2020-01-01T00:00:00Z", "--queue", "q", "--expires-after", "1h", "x"});
  EXPECT_EQ(daemon.Ctl({"lease", "--queue", "q"}).exit_code, 6);
  EXPECT_THAT(daemon.CtlOk({"show", late}), AllOf(HasSubstr("dead"), HasSubstr("expired")));
  EXPECT_EQ(daemon.Ctl({"wait", late}).exit_code, 1);
}

TEST(JobLifeTest, AnExportComesBackInAnotherDaemonWithEverythingButItsId) {
  Daemon from;
  Daemon to;
  ASSERT_TRUE(from.Start());
  ASSERT_TRUE(to.Start());
  from.CtlOk({"enqueue",
              "--queue",
              "q",
              "--key",
              "tried",
              "--priority",
              "5",
              "--lease",
              "90s",
              "--max-attempts",
              "7",
              "--expires-after",
              "30d",
              R"({"n":1})"});
  from.CtlOk({"nack", from.LeaseOne("q"), "--delay", "1h", "--error", "gateway down"});
  from.CtlOk({"enqueue", "--queue", "d", "--key", "dead", "y"});
  from.CtlOk({"bury", from.LeaseOne("d"), "--error", "no use"});
  from.CtlOk({"enqueue", "--queue", "d", "--key", "silent", "z"});
  from.CtlOk({"bury", from.LeaseOne("d")});
  from.CtlOk(
      {"enqueue", "--in", "2h", "--queue", "q", "--key", "watchdog", std::string("\xff\x01", 2)});
  const std::string lines =
      from.CtlOk({"export"}) + "\n" + from.CtlOk({"export", "--state", "dead"}) + "\n";
  to.CtlOk({"import", "-"}, lines);
  EXPECT_EQ(to.CtlOk({"list", "--state", "dead", "-q"}).size(), 3U) << "of all queues";

  for (const auto& [queue, key] : {std::pair("q", "tried"),
                                   std::pair("d", "dead"),
                                   std::pair("d", "silent"),
                                   std::pair("q", "watchdog")}) {
    const std::vector<std::string> show = {"show", "--queue", queue, "--key", key, "-o", "json"};
    const std::string before = from.CtlOk(show);
    const std::string after = to.CtlOk(show);
    for (const char* member : {"state", "due", "priority", "lease", "attempt", "max_attempts"}) {
      EXPECT_EQ(Member(after, member), Member(before, member)) << key << ' ' << member;
    }
    for (const char* member :
         {"expires_after", "last_error", "payload", "payload_base64", "touch_delay"}) {
      const std::string name = '"' + std::string(member) + "\":";
      ASSERT_EQ(after.find(name) != std::string::npos, before.find(name) != std::string::npos)
          << key << ' ' << member;
      if (before.find(name) != std::string::npos) {
        EXPECT_EQ(Member(after, member), Member(before, member)) << key << ' ' << member;
      }
    }
  }
  // The watchdog is fed as before.
  EXPECT_THAT(to.CtlOk({"touch", "--queue", "q", "--key", "watchdog"}), HasSubstr("is due in"));
  // Twice is once: every line has a key.
  EXPECT_THAT(to.Ctl({"import", "-"}, lines).err, HasSubstr("4 were there already"));
}

TEST(JobLifeTest, ImportGoesOnWhereItIsToldAndWaitsForADaemonThatIsAway) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  std::string lines;
  for (int i = 1; i <= 50; ++i) {
    lines += R"({"queue":"q","delay":"1h","key":"k)" + std::to_string(i) + "\"}\n";
  }
  const ProcessResult broken = daemon.Ctl({"import", "--batch", "7", "-"}, lines + "{\n" + lines);
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.err, AllOf(HasSubstr("line 51"), HasSubstr("--skip 50")));
  EXPECT_THAT(daemon.CtlOk({"stats", "-o", "json"}), HasSubstr(R"("enqueued":50,)"));
  EXPECT_EQ(
      daemon.Ctl({"import", "--batch", "7", "--skip", "51", "-"}, lines + "{\n" + lines).exit_code,
      0);
  EXPECT_THAT(daemon.CtlOk({"stats", "-o", "json"}),
              AllOf(HasSubstr(R"("enqueued":50,)"), HasSubstr(R"("existed":50,)")));
  // Batches under way overlap; a conflict in one of them is named by its line all the same.
  std::string conflict = lines;
  conflict += R"({"queue":"q","delay":"2h","key":"k1"})"
              "\n";
  EXPECT_THAT(daemon.Ctl({"import", "--batch", "3", "-"}, conflict + lines).err,
              HasSubstr("line 51"));
  daemon.Kill();
  const ProcessResult away = daemon.Ctl({"import", "--retry-for", "100ms", "-"}, lines);
  EXPECT_EQ(away.exit_code, 5);
  EXPECT_THAT(away.err, HasSubstr("trying for"));
}

TEST(JobLifeTest, TimesAreShownInUtcWhenAskedAndTheTimeoutIsBounded) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id =
      daemon.CtlOk({"enqueue", "--at", "2100-01-01T00:00:00Z", "--queue", "q", "x"});
  EXPECT_THAT(daemon.CtlOk({"show", id, "--utc"}), HasSubstr("2100-01-01"));
  EXPECT_EQ(daemon.Ctl({"show", id, "--timeout", "10s"}).exit_code, 0);
  EXPECT_EQ(daemon.Ctl({"show", id, "--timeout", "soon"}).exit_code, 2);
}

TEST(JobLifeTest, AHandlerThatTakesTooLongIsEndedAndItsJobIsTriedAgain) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--queue", "q", "--max-attempts", "1", "x"});
  daemon.Ctl({"work",
              "--queue",
              "q",
              "--count",
              "1",
              "--handler-timeout",
              "200ms",
              "--exec",
              "sleep",
              "600"});
  EXPECT_THAT(daemon.CtlOk({"show", id}), AllOf(HasSubstr("dead"), HasSubstr("200ms")));
}

}  // namespace
}  // namespace delayd::test
