// A user's day: enqueue, look, change, work, restart.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "protocol/job_json.h"
#include "tests/support/daemon.h"
#include "tests/support/notify_socket.h"

namespace delayd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::Test;

TEST(LifecycleTest, AJobGoesAllTheWay) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue",
                                       "--in",
                                       "1h",
                                       "--queue",
                                       "orders",
                                       "--key",
                                       "order:1001",
                                       R"({"order_id":1001})"});
  EXPECT_NE(daemon.CtlOk({"show", id, "-o", "json"}).find("\"scheduled\""), std::string::npos);
  EXPECT_NE(daemon.CtlOk({"list", "--queue", "orders"}).find("order:1001"), std::string::npos);
  daemon.CtlOk({"reschedule", id, "--in", "200ms"});
  const std::string leased =
      daemon.CtlOk({"lease", "--queue", "orders", "--wait", "10s", "-o", "json"});
  EXPECT_NE(leased.find(R"(\"order_id\":1001)"), std::string::npos) << leased;
  const std::string token = Member(leased, "lease_token");
  daemon.CtlOk({"extend", token, "--lease", "5m"});
  daemon.CtlOk({"ack", token});
  EXPECT_EQ(daemon.Ctl({"ack", token}).exit_code, 4);
  EXPECT_EQ(daemon.Ctl({"cancel", id}).exit_code, 4) << "finished, and kept with its key";
  EXPECT_EQ(daemon.Ctl({"cancel", "--queue", "orders", "--key", "order:1001"}).exit_code, 4);
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

TEST(LifecycleTest, CancelAndRescheduleByIdAndKey) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string a = daemon.CtlOk({"enqueue", "--in", "1h", "a"});
  daemon.CtlOk({"enqueue", "--in", "1h", "--key", "k", "b"});
  daemon.CtlOk({"reschedule", a, "--in", "2h"});
  daemon.CtlOk({"reschedule", "--key", "k", "--queue", "default", "--at", "2100-01-01T00:00:00Z"});
  EXPECT_NE(daemon.CtlOk({"show", "--queue", "default", "--key", "k", "-o", "json"})
                .find("2100-01-01T00:00:00.000Z"),
            std::string::npos);
  daemon.CtlOk({"cancel", a});
  daemon.CtlOk({"cancel", "--queue", "default", "--key", "k"});
  EXPECT_EQ(daemon.CtlOk({"list", "-q"}), "");
  EXPECT_EQ(daemon.Ctl({"cancel", a}).exit_code, 3);
}

// The state that a restart must keep, as a user sees it.
std::string Snapshot(Daemon* daemon) {
  return daemon->CtlOk({"list", "--all", "-o", "jsonl"}) + daemon->CtlOk({"queues"});
}

void FillWithEverything(Daemon* daemon) {
  for (int i = 0; i < 20; ++i) {
    daemon->CtlOk(
        {"enqueue", "--in", std::to_string(i + 1) + "h", "--queue", i % 2 == 0 ? "a" : "b", "far"});
  }
  const std::string moved =
      daemon->CtlOk({"enqueue", "--in", "1h", "--queue", "a", "--key", "moved", "x"});
  daemon->CtlOk({"reschedule", moved, "--in", "30h"});
  daemon->CtlOk({"cancel", daemon->CtlOk({"enqueue", "--in", "1h", "--queue", "a", "gone"})});
  daemon->CtlOk({"enqueue", "--queue", "tried", "x"});
  const std::string token = daemon->CtlOk({"lease", "--queue", "tried", "-q"});
  daemon->CtlOk({"nack", token, "--delay", "5h", "--error", "exit \"1\""});
  daemon->CtlOk({"enqueue", "--queue", "b", "ready"});
  daemon->CtlOk({"enqueue", "--queue", "big", "-"}, std::string(200'000, 'z'));
}

TEST(RestartTest, P1ACleanStopAndAKillEndInTheSameState) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  FillWithEverything(&daemon);
  const std::string before = Snapshot(&daemon);
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(Snapshot(&daemon), before);
  daemon.Kill();
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(Snapshot(&daemon), before);
}

// As by `cp -a BACKUP DIR` of a restore while the daemon runs.
TEST(LifecycleTest, AVerifyNamesACopyInTheDataDirectory) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"backup", daemon.Path("backup")});
  EXPECT_EQ(daemon.Ctl({"verify"}).err, "");
  fs::copy(daemon.Path("backup"), daemon.data_dir() + "/backup");
  const ProcessResult result = daemon.Ctl({"verify"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("/backup, which is a store or a backup itself"), std::string::npos);
}

TEST(RestartTest, P6LeasedJobsAreHandedOutAgainAndTheOldLeaseIsRefused) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "work"});
  const std::string first = daemon.CtlOk({"lease", "--queue", "default", "-q"});
  daemon.Kill();
  ASSERT_TRUE(daemon.Start());
  const std::string second = daemon.CtlOk({"lease", "--queue", "default", "-q"});
  EXPECT_NE(first, second);
  EXPECT_EQ(daemon.Ctl({"ack", first}).exit_code, 4);
  daemon.CtlOk({"ack", second});
}

// As in a restore with the daemon still there: one that were started again would make a new store.
TEST(RestartTest, P9AnExchangedDirectoryEndsItForGood) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  fs::rename(daemon.data_dir(), daemon.Path("data.old"));
  ASSERT_TRUE(WaitUntil([&daemon] { return !daemon.running(); }));
  EXPECT_EQ(daemon.Stop().exit_code, 7);
}

TEST(ExportTest, ExportedJobsImportAsTheyWere) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  FillWithEverything(&daemon);
  const std::string exported = daemon.CtlOk({"export"});
  Daemon other;
  ASSERT_TRUE(other.Start());
  other.CtlOk({"import", "-"}, exported + "\n");
  const auto without_ids = [](std::string text) {
    std::string kept;
    size_t at = 0;
    while (at < text.size()) {
      const size_t end = text.find('\n', at);
      std::string line = text.substr(at, end - at);
      for (const char* member : {"\"id\":", "\"due_kind\":"}) {
        if (const size_t from = line.find(member); from != std::string::npos) {
          line.erase(from, line.find(',', from) + 1 - from);
        }
      }
      kept += line + "\n";
      at = end == std::string::npos ? text.size() : end + 1;
    }
    return kept;
  };
  EXPECT_EQ(without_ids(other.CtlOk({"export"})), without_ids(exported));
}

// What a job is and has been through comes back, field by field. Its id and whether its due time
// was told as a delay belong to the daemon it was in.
TEST(ExportTest, EveryFieldOfAJobComesBack) {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) {
    every_byte += static_cast<char>(byte);
  }
  const std::string big(300'000, 'b');
  const std::vector<JobSpec> specs = {
      {.queue = "plain", .payload = "text"},
      {.queue = "empty", .due = DueAfter{Millis(3'600'000)}, .payload = ""},
      {.queue = "bytes", .due = DueAfter{Millis(3'600'000)}, .payload = every_byte},
      {.queue = "big", .due = DueAfter{Millis(3'600'000)}, .payload = big},
      {.queue = "words",
       .due = DueAfter{Millis(3'600'000)},
       .payload = "\"\\\n\u00e9 \xf0\x9f\x95\x92"},
      {.queue = "at", .due = DueAt{WallFromMillis(4'000'000'000'123)}, .payload = "x"},
      {.queue = "key", .due = DueAfter{Millis(7'200'000)}, .payload = "x", .key = "k \"e\" y"},
      {.queue = "first", .due = DueAfter{Millis(1'000'000)}, .payload = "x", .priority = 0},
      {.queue = "last", .due = DueAfter{Millis(1'000'000)}, .payload = "x", .priority = 4294967295},
      {.queue = "lease", .due = DueAfter{Millis(1'000'000)}, .payload = "x", .lease = Millis(1234)},
      {.queue = "once", .due = DueAfter{Millis(1'000'000)}, .payload = "x", .max_attempts = 1},
      {.queue = "ever", .due = DueAfter{Millis(1'000'000)}, .payload = "x", .max_attempts = 0},
      {.queue = "expires",
       .due = DueAfter{Millis(1'000'000)},
       .payload = "x",
       .expires_after = Millis(5678)},
  };
  std::string lines;
  for (const JobSpec& spec : specs) {
    lines += protocol::JobSpecToJson(spec) + "\n";
  }
  Daemon from;
  Daemon to;
  ASSERT_TRUE(from.Start());
  ASSERT_TRUE(to.Start());
  from.CtlOk({"import", "-"}, lines);
  to.CtlOk({"import", "-"}, from.CtlOk({"export"}) + "\n");
  const auto jobs_of = [](Daemon* daemon) {
    std::map<std::string, JobView> jobs;
    std::istringstream exported(daemon->CtlOk({"export"}));
    for (std::string line; std::getline(exported, line);) {
      auto job = protocol::ParseJob(line);
      EXPECT_TRUE(job.ok()) << job.status().message();
      jobs.emplace(job->queue, *std::move(job));
    }
    return jobs;
  };
  const auto before = jobs_of(&from);
  const auto after = jobs_of(&to);
  ASSERT_EQ(before.size(), specs.size());
  ASSERT_EQ(after.size(), specs.size());
  for (const JobSpec& spec : specs) {
    SCOPED_TRACE(spec.queue);
    const JobView& job = after.at(spec.queue);
    EXPECT_EQ(job.payload, spec.payload);
    EXPECT_EQ(job.payload_bytes, spec.payload.size());
    EXPECT_EQ(job.key, spec.key);
    EXPECT_EQ(job.due, before.at(spec.queue).due);
    EXPECT_EQ(job.state, before.at(spec.queue).state);
    EXPECT_EQ(job.priority, spec.priority.value_or(1024));
    EXPECT_EQ(job.lease, spec.lease.value_or(Millis(60'000)));
    EXPECT_EQ(job.max_attempts, spec.max_attempts.value_or(25));
    EXPECT_EQ(job.expires_after, spec.expires_after);
    EXPECT_EQ(job.delay, before.at(spec.queue).delay);
  }
  EXPECT_EQ(after.at("plain").delay, Millis(0)) << "touch makes it ready now";
}

// Without its heartbeat the service manager would kill it again and again.
TEST(LifecycleTest, TheServiceManagerHearsOfEachStep) {
  const TempDir dir;
  const NotifySocket manager(dir.Sub("notify.sock"));
  ProcessOptions options;
  const std::string config = dir.Sub("delayd.yaml");
  const std::string settings = "api: { socket: " + YamlText(dir.Sub("d.sock")) + " }\n";
  WriteFile(config, settings);
  options.argv = {DelaydPath(), "--data-dir", dir.Sub("data"), "--config", config};
  options.env = {{"NOTIFY_SOCKET", dir.Sub("notify.sock")}, {"WATCHDOG_USEC", "200000"}};
  options.stderr_path = dir.Sub("log");
  Process daemon(options);
  ASSERT_TRUE(manager.WaitForReady(&daemon)) << ReadFile(dir.Sub("log"));
  EXPECT_TRUE(manager.WaitFor("WATCHDOG=1", &daemon));
  EXPECT_TRUE(manager.WaitFor("WATCHDOG=1", &daemon)) << "one alone";
  daemon.Signal(SIGHUP);
  EXPECT_TRUE(manager.WaitFor("RELOADING=1\nMONOTONIC_USEC=", &daemon));
  EXPECT_TRUE(manager.WaitFor("READY=1\nSTATUS=Serving", &daemon)) << "systemd waits for its end";
  daemon.Signal(SIGUSR1);
  EXPECT_TRUE(manager.WaitFor("STATUS=Draining", &daemon));
  WriteFile(config, settings + "nonsense: 1\n");
  daemon.Signal(SIGHUP);
  EXPECT_TRUE(
      manager.WaitFor("READY=1\nSTATUS=Draining: no new jobs are taken; the last reload was "
                      "refused",
                      &daemon));
  EXPECT_TRUE(manager.WaitFor("WATCHDOG=1", &daemon));
  daemon.Signal(SIGTERM);
  EXPECT_TRUE(manager.WaitFor("STOPPING=1", &daemon));
  EXPECT_EQ(daemon.Wait().exit_code, 0);
}

}  // namespace
}  // namespace delayd::test
