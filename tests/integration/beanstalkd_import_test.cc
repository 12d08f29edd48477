// delayctl import --from-beanstalkd: a real beanstalkd is drained, and each side is killed on the
// way. Skipped where beanstalkd is not installed.
#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/beanstalk_client.h"
#include "tests/support/beanstalkd.h"
#include "tests/support/daemon.h"
#include "tests/support/process.h"

namespace delayd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Beanstalkd::IsInstalled()) {
      GTEST_SKIP() << Beanstalkd::kWhyNot;
    }
    ASSERT_TRUE(daemon_.Start());
    source_ = std::make_unique<Beanstalkd>();
  }

  std::vector<std::string> ImportArgs() const {
    return {"import", "--from-beanstalkd", "unix:" + source_->socket()};
  }

  void PutMany(int count) {
    BeanstalkClient client = source_->Connect();
    std::string commands = "use many\r\n";
    for (int i = 0; i < count; ++i) {
      const std::string body = "job " + std::to_string(i);
      // Every third one waits.
      commands += "put 5 " + std::string(i % 3 == 0 ? "3600" : "0") + " 60 " +
                  std::to_string(body.size()) + "\r\n" + body + "\r\n";
    }
    client.Send(commands);
    for (int i = 0; i <= count; ++i) {
      client.Read();
    }
  }

  // Payloads of all jobs here.
  std::multiset<std::string> Payloads() {
    std::multiset<std::string> payloads;
    for (const char* state : {"scheduled", "ready"}) {
      const std::string lines = daemon_.CtlOk({"export", "--queue", "many", "--state", state});
      size_t at = 0;
      const std::string member = "\"payload\":\"";
      while ((at = lines.find(member, at)) != std::string::npos) {
        at += member.size();
        payloads.insert(lines.substr(at, lines.find('"', at) - at));
      }
    }
    return payloads;
  }

  uint64_t LeftAtSource() const {
    BeanstalkClient client = source_->Connect();
    const std::string stats = client.Call("stats");
    uint64_t left = 0;
    for (const char* field : {"current-jobs-ready: ",
                              "current-jobs-reserved: ",
                              "current-jobs-delayed: ",
                              "current-jobs-buried: "}) {
      const size_t at = stats.find(field);
      left += std::stoull(stats.substr(at + std::string(field).size()));
    }
    return left;
  }

  // Waits until `import` has taken some of so many jobs, or has ended. Asks where that costs
  // nothing: it has soon taken all.
  void WaitForSome(Process& import, uint64_t jobs) {
    while (LeftAtSource() == jobs && !import.HasEnded()) {
    }
  }

  Daemon daemon_;
  std::unique_ptr<Beanstalkd> source_;
};

TEST_F(ImportTest, JobsKeepWhatTheyAre) {
  BeanstalkClient client = source_->Connect();
  client.Call("use orders");
  client.Call("put 7 3600 90 5\r\nlater");
  client.Call("put 3 0 30 6\r\nb\r\nin\xff");
  client.Call("put 1 0 60 4\r\ndead");
  client.Call("watch orders");
  EXPECT_THAT(client.Call("reserve"), HasSubstr("dead"));
  client.Call("bury 3 9");
  client.Call("use paused");
  client.Call("put 2 0 60 4\r\nhere");
  client.Call("pause-tube paused 3600");
  client.Call("use work");
  client.Call("put 0 0 60 4\r\nbusy");
  client.Call("watch work");
  EXPECT_THAT(client.Call("reserve"), HasSubstr("busy"));
  const ProcessResult result = daemon_.Ctl(ImportArgs());
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(daemon_.CtlOk({"list", "--state", "dead", "-o", "jsonl"}),
              HasSubstr(R"("last_error":"buried in beanstalkd")"));
  EXPECT_THAT(
      result.err,
      ::testing::AllOf(HasSubstr("imported 4 jobs"),
                       HasSubstr("1 job left there (0 ready, 0 delayed, 0 buried, 1 "
                                 "reserved); run it again when the workers there are done")));
  const std::string all = daemon_.CtlOk({"export", "--queue", "orders"});
  EXPECT_THAT(all,
              ::testing::AllOf(HasSubstr(R"("priority":7)"),
                               HasSubstr(R"("lease":"1m30s")"),
                               HasSubstr(R"("payload":"later")"),
                               HasSubstr(R"("payload_base64":"Yg0KaW7/")")));
  EXPECT_THAT(daemon_.CtlOk({"list", "--queue", "orders", "--state", "dead", "-o", "jsonl"}),
              HasSubstr(R"("priority":9)"));
  EXPECT_THAT(daemon_.CtlOk({"list", "--queue", "paused", "-o", "jsonl"}),
              HasSubstr(R"("state":"ready")"));
  EXPECT_EQ(client.Call("delete 5"), "DELETED\r\n");
  EXPECT_EQ(LeftAtSource(), 0U);
  std::vector<std::string> again = ImportArgs();
  again.insert(again.end(), {"-o", "json"});
  const ProcessResult nothing = daemon_.Ctl(again);
  EXPECT_EQ(nothing.err, "");
  EXPECT_THAT(nothing.out,
              ::testing::StartsWith(
                  R"({"imported":0,"existed":0,"taken":0,"too_large":0,"queue_full":0,"left":0,)"));
}

TEST_F(ImportTest, ATubeThatIsPausedThereIsPausedHere) {
  BeanstalkClient client = source_->Connect();
  for (const char* tube : {"ready", "delayed", "longer", "shorter", "free", "empty"}) {
    client.Call("use " + std::string(tube));
    client.Call(tube == std::string("delayed") ? "put 1 3600 60 1\r\nx" : "put 1 0 60 1\r\nx");
    client.Call("pause-tube " + std::string(tube) + (tube == std::string("free") ? " 0" : " 600"));
  }
  client.Call("delete 6");
  daemon_.CtlOk({"pause", "longer", "--create"});
  daemon_.CtlOk({"pause", "shorter", "--create", "--for", "1s"});
  const ProcessResult result = daemon_.Ctl(ImportArgs());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("; paused here as there: delayed, ready, shorter\n"));
  for (const char* tube : {"ready", "delayed", "shorter"}) {
    EXPECT_THAT(daemon_.CtlOk({"queues", tube, "-o", "jsonl"}),
                ::testing::ContainsRegex("\"paused\":true,\"pause_left\":\"(9m|10m)"))
        << tube;
  }
  EXPECT_THAT(daemon_.CtlOk({"queues", "longer", "-o", "jsonl"}),
              ::testing::AllOf(HasSubstr("\"paused\":true"), Not(HasSubstr("pause_left"))));
  EXPECT_THAT(daemon_.CtlOk({"queues", "free", "-o", "jsonl"}), HasSubstr("\"paused\":false"));
  EXPECT_THAT(daemon_.CtlOk({"queues", "-o", "jsonl"}), Not(HasSubstr("\"empty\"")));
  client.Call("put 1 0 60 1\r\nx");  // into "empty", which is paused
  std::vector<std::string> again = ImportArgs();
  again.insert(again.end(), {"-o", "json"});
  EXPECT_THAT(daemon_.Ctl(again).out, HasSubstr(R"("paused":["empty"])"));
}

// One of each state stands before a small one of its kind.
TEST_F(ImportTest, JobsThatAreTooLargeStayAndHoldNobodyUp) {
  source_ = std::make_unique<Beanstalkd>("3000000");
  const std::string large(2'000'000, 'x');
  BeanstalkClient client = source_->Connect();
  client.Call("use many");
  client.Call("watch many");
  client.Call("ignore default");
  const auto put = [&client](const std::string& head, const std::string& body) {
    client.Call("put " + head + " 60 " + std::to_string(body.size()) + "\r\n" + body);
  };
  for (const std::string& body : {large, std::string("dead")}) {
    put("0 0", body);
    client.Call("reserve");
    client.Call(body == large ? "bury 1 7" : "bury 2 0");
  }
  put("8 3600", large);
  put("9 3601", "later");
  put("0 0", large);
  put("1 0", "now");
  const ProcessResult result = daemon_.Ctl(ImportArgs());
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("imported 3 jobs"));
  EXPECT_THAT(result.err, HasSubstr("3 jobs too large for the daemon's limits.payload"));
  EXPECT_THAT(result.err,
              HasSubstr("id 1 of tube many (buried), id 3 of tube many, id 5 of tube many;"));
  EXPECT_EQ(LeftAtSource(), 3U);
  EXPECT_EQ(Payloads(), (std::multiset<std::string>{"later", "now"}));
  EXPECT_THAT(client.Call("stats-job 1"), HasSubstr("state: buried\npri: 7"));
  EXPECT_THAT(client.Call("stats-job 3"), HasSubstr("state: delayed\npri: 8"));
  EXPECT_THAT(client.Call("stats-job 3"), ::testing::ContainsRegex("time-left: 3(600|5..)\n"));
  EXPECT_THAT(client.Call("stats-job 5"), HasSubstr("state: ready\npri: 0"));
  EXPECT_EQ(daemon_.Ctl(ImportArgs()).exit_code, 1);
  EXPECT_EQ(LeftAtSource(), 3U);
}

TEST_F(ImportTest, P3RoomUnderAQuotaIsWaitedForAndNoJobIsLost) {
  daemon_.Stop();
  ASSERT_TRUE(daemon_.Start(
      {"--config", daemon_.Write("delayd.yaml", "queues: { many: { max_jobs: 3 } }\n")}));
  BeanstalkClient client = source_->Connect();
  client.Call("use many");
  for (const char* body : {"a", "b", "c", "d"}) {
    client.Call(std::string("put 5 0 60 1\r\n") + body);
  }
  std::vector<std::string> impatient = ImportArgs();
  impatient.insert(impatient.end(), {"--retry-for", "1ms"});
  const ProcessResult given_up = daemon_.Ctl(impatient);
  EXPECT_EQ(given_up.exit_code, 1);
  EXPECT_THAT(given_up.err, HasSubstr("queue many holds 3 jobs and may hold 3"));
  EXPECT_THAT(given_up.err, HasSubstr("no job is lost, run it again for the rest"));
  EXPECT_EQ(Payloads().size(), 3U);
  EXPECT_EQ(LeftAtSource(), 1U);

  Process import(daemon_.CtlOptions(ImportArgs()));
  const auto waits = [&import] { return import.err().find("trying for 30s") != std::string::npos; };
  EXPECT_TRUE(WaitUntil(waits)) << import.err();
  // Nobody is kept there from what finds no room here.
  const auto is_free = [&client] {
    return client.Call("stats").find("current-jobs-ready: 1\n") != std::string::npos;
  };
  EXPECT_TRUE(WaitUntil(is_free));
  daemon_.CtlOk({"cancel", "--queue", "many", "--state", "ready", "--yes"});
  const ProcessResult result = import.Wait(std::chrono::seconds(120));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(LeftAtSource(), 0U);
}

// Its jobs are the most urgent: each batch and each tube's first is of it.
TEST_F(ImportTest, AFullQueueHoldsUpNoOtherTube) {
  daemon_.Stop();
  ASSERT_TRUE(daemon_.Start(
      {"--config",
       daemon_.Write("delayd.yaml",
                     "queues: { full: { max_jobs: 1 }, default: { max_jobs: 1 } }\n")}));
  BeanstalkClient client = source_->Connect();
  client.Call("use full");
  for (const char* head : {"0 0", "0 0", "0 0", "0 3600"}) {
    client.Call("put " + std::string(head) + " 60 1\r\nx");
  }
  PutMany(9);
  std::vector<std::string> args = ImportArgs();
  args.insert(args.end(), {"--retry-for", "1ms"});
  const ProcessResult result = daemon_.Ctl(args);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              ::testing::AllOf(HasSubstr("imported 10 jobs"),
                               HasSubstr("no room for 3 jobs, left there: full (3 jobs); queue "
                                         "full holds 1 job and may hold 1"),
                               HasSubstr("no job is lost, run it again for the rest"),
                               Not(HasSubstr("reserved"))));
  EXPECT_EQ(Payloads().size(), 9U);
  EXPECT_THAT(client.Call("stats-tube full"),
              ::testing::AllOf(HasSubstr("current-jobs-ready: 2\n"),
                               HasSubstr("current-jobs-delayed: 1\n")));
  // Every tube is full, and a connection must watch one.
  client.Call("use default");
  client.Call("put 0 0 60 1\r\nx");
  client.Call("put 0 0 60 1\r\nx");
  args.insert(args.end(), {"-o", "json"});
  EXPECT_THAT(daemon_.Ctl(args).out,
              HasSubstr(R"("imported":1,"existed":0,"taken":0,)"
                        R"("too_large":0,"queue_full":4,"left":4,)"));
}

TEST_F(ImportTest, TubesThatAreMadeMeanwhileAreTakenToo) {
  constexpr int kJobs = 900;
  std::unique_ptr<Process> import;
  // Until one is held in the middle: on a busy machine it may be over before.
  while (LeftAtSource() == 0) {
    PutMany(kJobs);
    import = std::make_unique<Process>(daemon_.CtlOptions(ImportArgs()));
    WaitForSome(*import, kJobs);
    import->Signal(SIGSTOP);  // it has its list of tubes
  }
  BeanstalkClient client = source_->Connect();
  for (const char* tube : {"late", "paused"}) {
    client.Call("use " + std::string(tube));
    client.Call("put 1 0 60 3\r\nnow");
    client.Call("put 1 3600 60 5\r\nlater");
    client.Call("pause-tube paused 3600");
  }
  import->Signal(SIGCONT);
  const ProcessResult result = import->Wait(std::chrono::seconds(120));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(LeftAtSource(), 0U);
  for (const char* tube : {"late", "paused"}) {
    EXPECT_THAT(daemon_.CtlOk({"export", "--queue", tube}),
                ::testing::AllOf(HasSubstr(R"("payload":"now")"), HasSubstr(R"("later")")));
  }
}

TEST(ImportFromDelaydTest, IsRefusedAndChangesNothing) {
  Daemon daemon;
  const std::string beanstalk = daemon.Path("b.sock");
  ASSERT_TRUE(daemon.Start(
      {"--config",
       daemon.Write("delayd.yaml", "beanstalk: { socket: " + YamlText(beanstalk) + " }\n")}));
  daemon.CtlOk({"enqueue", "--queue", "orders", "--key", "order:1", "--in", "1h", "x"});
  daemon.CtlOk({"enqueue", "--queue", "orders", "--key", "order:2", "x"});
  const std::string before = daemon.CtlOk({"export"});
  const ProcessResult result = daemon.Ctl({"import", "--from-beanstalkd", "unix:" + beanstalk});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "delayctl: unix:" + beanstalk + " is a delayd; use delayctl export and import\n");
  EXPECT_EQ(daemon.CtlOk({"export"}), before);
}

TEST_F(ImportTest, P3NoJobIsLostWhenTheSourceDies) {
  constexpr int kJobs = 900;
  PutMany(kJobs);
  Process import(daemon_.CtlOptions(ImportArgs()));
  WaitForSome(import, kJobs);
  source_->Kill();
  const ProcessResult died = import.Wait();
  EXPECT_THAT(died.err, ::testing::AnyOf(HasSubstr("no job is lost"), HasSubstr("imported 900")));
  source_->Start();
  EXPECT_EQ(daemon_.Ctl(ImportArgs()).exit_code, 0);
  EXPECT_EQ(LeftAtSource(), 0U);
  // The source has another instance now: what it had handed over and not deleted is there twice.
  const std::multiset<std::string> payloads = Payloads();
  EXPECT_EQ(std::set<std::string>(payloads.begin(), payloads.end()).size(), size_t{kJobs});
  EXPECT_LE(payloads.size(), size_t{kJobs} + 200);
}

TEST_F(ImportTest, P3NoJobIsLostOrDoubledWhenDelaydDies) {
  constexpr int kJobs = 900;
  PutMany(kJobs);
  Process import(daemon_.CtlOptions(ImportArgs()));
  WaitForSome(import, kJobs);
  daemon_.Kill();
  ASSERT_TRUE(daemon_.Start());
  const ProcessResult waited = import.Wait(std::chrono::seconds(120));
  EXPECT_EQ(waited.exit_code, 0) << waited.err;
  EXPECT_EQ(LeftAtSource(), 0U);
  const std::multiset<std::string> payloads = Payloads();
  EXPECT_EQ(payloads.size(), size_t{kJobs});
  EXPECT_EQ(std::set<std::string>(payloads.begin(), payloads.end()).size(), size_t{kJobs});
}

TEST_F(ImportTest, P3NoJobIsLostOrDoubledWhenTheImportDies) {
  constexpr int kJobs = 900;
  PutMany(kJobs);
  {
    Process import(daemon_.CtlOptions(ImportArgs()));
    WaitForSome(import, kJobs);
    import.Signal(SIGKILL);
    import.Wait();
  }
  EXPECT_EQ(daemon_.Ctl(ImportArgs()).exit_code, 0);
  EXPECT_EQ(LeftAtSource(), 0U);
  const std::multiset<std::string> payloads = Payloads();
  EXPECT_EQ(payloads.size(), size_t{kJobs});
}

}  // namespace
}  // namespace delayd::test
