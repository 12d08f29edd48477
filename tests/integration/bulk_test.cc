// Many jobs at once, and the verbs that look: through the real daemon and the real command line.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/http_call.h"
#include "tests/support/daemon.h"

#include <sys/stat.h>

namespace delayd::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void Import(Daemon* daemon, const std::string& queue, int count, const std::string& delay) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += R"({"queue":")" + queue + R"(","delay":")" + delay + R"(","key":"order:)" +
             std::to_string(i) + "\"}\n";
  }
  daemon->CtlOk({"import", "-"}, lines);
}

TEST(BulkTest, CancelsByFilterInSteps) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  Import(&daemon, "orders", 3000, "1h");
  Import(&daemon, "mail", 10, "3h");
  EXPECT_THAT(
      daemon.CtlOk({"cancel", "--queue", "orders", "--key-prefix", "order:1", "--dry-run"}),
      AllOf(HasSubstr("orders  order:1"), HasSubstr("1111 jobs match; nothing was changed")));
  const ProcessResult refused = daemon.Ctl({"cancel", "--queue", "orders"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--yes"));
  EXPECT_EQ(daemon.CtlOk({"cancel", "--due-before", "2h", "--yes", "-o", "json"}),
            R"({"matched":3000,"changed":3000})");
  EXPECT_EQ(daemon.CtlOk({"list", "--queue", "orders", "--all", "-q"}), "");
  EXPECT_EQ(daemon.CtlOk({"cancel", "--state", "scheduled", "-y", "-q"}), "10");
  EXPECT_EQ(daemon.Ctl({"cancel", "--queue", "nowhere", "-y"}).exit_code, 3);
}

TEST(BulkTest, P4AMassCancelThatAKillInterruptsIsFinishedByTheSameCommand) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  Import(&daemon, "orders", 2000, "1h");
  EXPECT_THAT(
      HttpCall(daemon, "POST", "/v1/jobs:cancel", R"({"filter":{"queue":"orders"},"limit":500})")
          .body,
      HasSubstr(R"("changed":500,"next_cursor")"));
  daemon.Kill();
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.CtlOk({"cancel", "--queue", "orders", "--yes", "-q"}), "1500");
}

TEST(BulkTest, ReschedulesByFilterToOneDueTime) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  Import(&daemon, "orders", 600, "1h");
  EXPECT_EQ(daemon.CtlOk({"reschedule",
                          "--queue",
                          "orders",
                          "--at",
                          "2100-01-01T00:00:00Z",
                          "--priority",
                          "5",
                          "--yes",
                          "-q"}),
            "600");
  EXPECT_EQ(daemon.CtlOk({"list",
                          "--due-after",
                          "2100-01-01T00:00:00Z",
                          "--due-before",
                          "2100-01-01T00:00:00.001Z",
                          "--key-prefix",
                          "order:59",
                          "-q",
                          "--all"}),
            daemon.CtlOk({"list", "--key-prefix", "order:59", "-q", "--all"}));
  EXPECT_EQ(daemon.CtlOk({"reschedule", "--queue", "orders", "--in", "30m", "-y", "-q"}), "600");
  EXPECT_EQ(daemon.CtlOk(
                {"reschedule", "--queue", "orders", "--due-after", "2h", "--in", "1m", "-n", "-q"}),
            "0");
  EXPECT_EQ(daemon.Ctl({"reschedule", "--queue", "orders", "-y"}).exit_code, 2);
}

TEST(ForecastTest, CountsNearAndFarAndDraws) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  Import(&daemon, "soon", 7, "10m");
  Import(&daemon, "late", 40, "5h30m");
  EXPECT_EQ(daemon.CtlOk({"forecast", "--to", "6h", "--step", "3h", "-q"}), "7\n40");
  EXPECT_EQ(daemon.CtlOk({"forecast", "--queue", "late", "--to", "6h", "--step", "3h", "-q"}),
            "0\n40");
  EXPECT_THAT(daemon.CtlOk({"forecast", "--from", "3h", "--to", "6h", "-o", "json"}),
              HasSubstr("\"count\":40"));
  EXPECT_THAT(daemon.CtlOk({"forecast", "-o", "jsonl"}), HasSubstr("\"count\":7"));
  EXPECT_THAT(daemon.CtlOk({"forecast", "--to", "6h", "--step", "3h", "--chart"}),
              AllOf(HasSubstr("  7  "), HasSubstr(" 40  ")));
  EXPECT_EQ(daemon.Ctl({"forecast", "--to", "1000h", "--step", "1s"}).exit_code, 2);
  EXPECT_EQ(daemon.Ctl({"forecast", "--queue", "nowhere"}).exit_code, 3);
}

TEST(WatchTest, ChangesAreStreamedThroughARestartOfTheDaemon) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  ProcessOptions options = daemon.CtlOptions({"list", "--watch", "-o", "jsonl"});
  options.stdout_path = daemon.Path("watch");
  Process watch(options);
  const auto wait_for = [&daemon](const std::string& text) {
    EXPECT_TRUE(WaitUntil([&] {
      return ReadFile(daemon.Path("watch")).find(text) != std::string::npos;
    })) << text;
  };
  wait_for("\"appeared\"");
  daemon.CtlOk({"run", id});
  wait_for("\"changed\"");
  daemon.CtlOk({"cancel", id});
  wait_for("\"gone\"");
  daemon.Stop();
  ASSERT_TRUE(daemon.Start());
  wait_for("\"id\":" + daemon.CtlOk({"enqueue", "--in", "1h", "x"}));
  EXPECT_FALSE(watch.HasEnded());
  EXPECT_EQ(daemon.Ctl({"list", "--watch"}).exit_code, 2);  // its stdout is no terminal
}

TEST(WatchTest, WaitEndsWithTheJobAndTellsItsOutcome) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--in", "1h", "--key", "k", "x"});
  EXPECT_EQ(daemon.Ctl({"wait", id, "--wait", "10ms"}).exit_code, 6);
  EXPECT_EQ(daemon.Ctl({"wait", "999"}).exit_code, 3);
  Process fired(daemon.CtlOptions({"wait", id, "--for", "fired"}));
  Process done(daemon.CtlOptions({"wait", "--key", "k", "--queue", "default"}));
  daemon.CtlOk({"run", id});
  EXPECT_EQ(fired.Wait().exit_code, 0);
  daemon.CtlOk({"ack", daemon.CtlOk({"lease", "--queue", "default", "-q"})});
  EXPECT_EQ(done.Wait().exit_code, 0);
  EXPECT_EQ(daemon.Ctl({"run", "--key", "k"}).exit_code, 4);
  daemon.CtlOk({"cancel", daemon.CtlOk({"enqueue", "--in", "1h", "--key", "c", "x"})});
  EXPECT_EQ(daemon.Ctl({"wait", "--key", "c"}).exit_code, 4);
}

TEST(StatusTest, StatusAndTopShowWhatThereIs) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  Import(&daemon, "orders", 5, "55s");
  EXPECT_THAT(daemon.CtlOk({"status"}), AllOf(HasSubstr(", ready"), HasSubstr("5 scheduled")));
  EXPECT_THAT(daemon.CtlOk({"status", "-o", "json"}), HasSubstr("\"status\":\"ready\""));
  EXPECT_THAT(
      daemon.CtlOk({"top", "--once", "--interval", "100ms"}),
      AllOf(HasSubstr("5 scheduled"), HasSubstr("orders"), HasSubstr("5 due in the next 60s")));
  EXPECT_THAT(daemon.CtlOk({"top", "--once", "--interval", "100ms", "-o", "json"}),
              HasSubstr("\"interval_ms\":"));
  EXPECT_EQ(daemon.Ctl({"top"}).exit_code, 2);
  daemon.Stop();
  EXPECT_EQ(daemon.Ctl({"status"}).exit_code, 5);
}

TEST(BulkTest, AnImportThatWaitsForItsPipeEndsByASignal) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string path = daemon.Path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int pipe = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  const std::string acked = daemon.Path("acked");
  Process import(daemon.CtlOptions({"import", "--batch", "1", "--ack-log", acked, path}));
  const std::string lines = "{\"queue\":\"orders\"}\n{\"queue\":\"orders\"}\n{\"que";
  ASSERT_EQ(::write(pipe, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  // The daemon lists a job before its import knows that it is durable.
  EXPECT_TRUE(WaitUntil([&] {
    const std::string lines_acked = ReadFile(acked);
    return std::count(lines_acked.begin(), lines_acked.end(), '\n') == 2;
  })) << import.err();
  import.Signal(SIGINT);
  const ProcessResult result = import.Wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, HasSubstr("the lines up to 2 are enqueued, resume with --skip 2"));
  ::close(pipe);
}

TEST(WatchTest, ASignalThatTheParentHasBlockedEndsItAllTheSame) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ProcessOptions options = daemon.CtlOptions({"top", "-o", "jsonl", "--interval", "100ms"});
    options.argv.insert(options.argv.begin(), {"/usr/bin/env", "--block-signal=TERM,INT,HUP"});
    options.stdout_path = daemon.Path("top." + std::to_string(signal));
    Process top(options);
    EXPECT_TRUE(WaitUntil([&] { return !ReadFile(options.stdout_path).empty(); })) << top.err();
    top.Signal(signal);
    EXPECT_EQ(top.Wait().signal, signal);
  }
}

TEST(BulkTest, AStdoutThatCannotBeWrittenHidesNothing) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  // The command may use $2 and $3.
  const auto shell = [&daemon](const std::string& command,
                               const std::string& second = "",
                               const std::string& third = "") {
    return RunProcess({.argv = {"/bin/bash",
                                "-c",
                                "set -o pipefail; \"$0\" --server \"unix:$1\" " + command,
                                DelayctlPath(),
                                daemon.socket(),
                                second,
                                third}});
  };
  const ProcessResult enqueued = shell("enqueue --queue one x > /dev/full");
  EXPECT_EQ(enqueued.exit_code, 1);
  EXPECT_THAT(enqueued.err, HasSubstr("look before you do it again"));
  EXPECT_NE(daemon.CtlOk({"list", "--queue", "one", "-q"}), "");
  for (const char* reading : {"list", "queues", "stats", "clock", "verify", "completion bash"}) {
    EXPECT_EQ(shell(std::string(reading) + " > /dev/full").err,
              "delayctl: cannot write to stdout; is the disk full, or its reader gone?\n");
  }
  EXPECT_THAT(shell("clock accept > /dev/full").err, HasSubstr("look before you do it again"));

  std::string lines;
  for (int i = 0; i < 300; ++i) {
    lines += "{}\n";
  }
  const std::string file = daemon.Write("jobs", lines);
  // Nothing is read before the reader has gone.
  const std::string gone = daemon.Path("gone");
  ASSERT_EQ(::mkfifo(gone.c_str(), 0600), 0);
  const ProcessResult imported =
      shell(R"(import -q --batch 1 <(cat "$2" "$3") | { exec 0<&-; echo > "$2"; })", gone, file);
  EXPECT_EQ(imported.exit_code, 1);
  EXPECT_THAT(imported.err, HasSubstr("resume with --skip"));

  Import(&daemon, "orders", 3000, "1h");
  const ProcessResult exported = shell("export --queue orders > /dev/full");
  EXPECT_EQ(exported.exit_code, 1);
  EXPECT_THAT(exported.err, HasSubstr("export stopped after "));
  EXPECT_THAT(exported.err, ::testing::Not(HasSubstr("export stopped after 3000 jobs")));
  EXPECT_THAT(exported.err, HasSubstr("cannot write to stdout"));

  // Verbs that watch end as well, and say why.
  for (const char* watching : {"top -o jsonl --interval 100ms", "list --watch -o jsonl"}) {
    const ProcessResult watched = shell(std::string(watching) + " > /dev/full");
    EXPECT_EQ(watched.exit_code, 1) << watching;
    EXPECT_THAT(watched.err, HasSubstr("cannot write to stdout")) << watching;
  }
}

TEST(BulkTest, AnExportAboveTheLimitOfFileSizesIsTold) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  Import(&daemon, "orders", 500, "1h");
  ProcessOptions options = daemon.CtlOptions({"export"});
  options.argv.insert(options.argv.begin(), {"/bin/sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"});
  const ProcessResult exported = RunProcess(options);
  EXPECT_EQ(exported.exit_code, 1) << "signal " << exported.signal;
  EXPECT_THAT(exported.err,
              AllOf(HasSubstr("cannot write to stdout"), HasSubstr("export stopped after ")));
}

// UBSan looks at objects through a pipe of its own, for which there is no descriptor.
#if !defined(DELAYD_SANITIZED)
TEST(BulkTest, AnImportWithoutAFreeFileDescriptorTellsOfTheLimit) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string file = daemon.Write("jobs", "{\"queue\":\"orders\"}\n");
  ProcessOptions options = daemon.CtlOptions({"import", "--retry-for", "0s", file});
  // The standard three, and the file; what we have inherited as number 3 ourselves would be in its
  // way.
  options.argv.insert(options.argv.begin(),
                      {"/bin/sh", "-c", "exec 3>&-; ulimit -n 4; exec \"$@\"", "sh"});
  const ProcessResult imported = RunProcess(options);
  EXPECT_EQ(imported.exit_code, 5) << "signal " << imported.signal;
  EXPECT_THAT(imported.err, HasSubstr("Too many open files; raise the limit of open files"));
}
#endif

}  // namespace
}  // namespace delayd::test
