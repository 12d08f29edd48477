// Starts that must be refused: one line that says why and what to do, a code of its own, and
// nothing lost.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "tests/support/daemon.h"
#include "tests/support/process.h"

#include <sys/stat.h>

namespace delayd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void ExpectRefusal(const ProcessResult& result, int exit_code, const std::string& what) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_THAT(result.err, HasSubstr(what));
  std::istringstream lines(result.err);
  int refusals = 0;
  for (std::string line; std::getline(lines, line);) {
    refusals += line.find("Z info ") == std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(refusals, 1) << result.err;
}

TEST(StartTest, ADataDirectoryInUseIsRefused) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  ExpectRefusal(
      daemon.StartExpectingFailure({"--api-socket", daemon.Path("other.sock")}), 3, "in use");
  EXPECT_NE(daemon.CtlOk({"list", "-q"}), "") << "the first daemon does not notice";
}

TEST(StartTest, TheCureIsToldBehindALongPathToo) {
  Daemon daemon;
  std::string path = daemon.Path("data");
  for (int i = 0; i < 5; ++i) {
    path += "/" + std::string(200, 'x');
  }
  std::filesystem::create_directories(path + "/photos");
  ExpectRefusal(daemon.StartExpectingFailure({"--data-dir", path}),
                3,
                "no delayd store; set data_dir to an empty directory");
}

TEST(StartTest, ANewerSchemaIsRefusedAndLeftAlone) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  const auto set_schema = [&](uint64_t version) {
    auto store = storage::OpenRocksJobStore({.path = daemon.data_dir()});
    ASSERT_TRUE(store.ok()) << store.status().message();
    storage::Batch batch;
    batch.Put(storage::Table::kMeta,
              storage::kSchemaKey,
              storage::EncodeNumber(storage::kSchemaKey, version));
    ASSERT_TRUE((*store)->Commit(batch).ok());
    ASSERT_TRUE((*store)->Close().ok());
  };
  set_schema(storage::kSchemaVersion + 1);
  ExpectRefusal(daemon.StartExpectingFailure(), 4, "schema");
  for (const char* mode : {"--verify", "--recover"}) {
    EXPECT_EQ(daemon.StartExpectingFailure({mode}).exit_code, 4) << mode;
  }
}

TEST(StartTest, ADataDirectoryThatCannotBeIsToldWithACure) {
  Daemon daemon;
  daemon.Write("file", "x");
  for (const std::string& place : {std::string("/proc/nope"),
                                   std::string("/dev/null"),
                                   std::string("/dev/null/x"),
                                   daemon.Path("file"),
                                   daemon.Path(std::string(300, 'x'))}) {
    ExpectRefusal(daemon.StartExpectingFailure({"--data-dir", place}), 3, "set data_dir to a");
  }
}

TEST(StartTest, ADataDirectoryThatMayNotBeMadeIsToldHowToMakeIt) {
  Daemon daemon;
  const std::string closed = daemon.Path("closed");
  ASSERT_EQ(::mkdir(closed.c_str(), 0500), 0);
  daemon.Under(  // root may write everywhere
      "[ $(id -u) != 0 ] || "
      "exec setpriv --bounding-set=-dac_override --inh-caps=-dac_override \"$@\"");
  ExpectRefusal(daemon.StartExpectingFailure({"--data-dir", closed + "/data"}),
                3,
                closed + "/data: Permission denied; make it for the daemon's user");
}

// The service, which runs as their owner, would not start behind it.
TEST(StartTest, RootLeavesNothingInTheStoreOfAnother) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root may open the store of another";
  }
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  constexpr uid_t kNobody = 65534;
  const auto chown_all = [&daemon](uid_t owner) {
    for (const auto& file : std::filesystem::directory_iterator(daemon.data_dir())) {
      ASSERT_EQ(::chown(file.path().c_str(), owner, owner), 0);
    }
  };
  chown_all(kNobody);
  ExpectRefusal(daemon.StartExpectingFailure(), 3, " was made by user nobody, ");
  for (const auto& file : std::filesystem::directory_iterator(daemon.data_dir())) {
    struct stat info {};

    ASSERT_EQ(::stat(file.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, kNobody) << file.path();
  }
  chown_all(0);
  EXPECT_TRUE(daemon.Start());
}

TEST(StartTest, AnUnknownConfigKeyIsNamedWithItsPlace) {
  Daemon daemon;
  const std::string path = daemon.Write("delayd.yaml", "log:\n  levle: info\n");
  ExpectRefusal(daemon.StartExpectingFailure({"--config", path}), 2, path + ":2:3");
  const ProcessResult checked = daemon.Ctl({"config", "check", path, "-o", "json"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_EQ(checked.err, "");
  EXPECT_THAT(checked.out,
              HasSubstr("\"valid\":false,\"remarks\":[\"" + path + ":2:3: unknown key"));
}

TEST(StartTest, AConfigCheckRefusesWhatTheStartRefuses) {
  Daemon daemon;
  const std::string path = daemon.Path("delayd.yaml");
  for (const std::string& text :
       {std::string("access: { read: \"nobody-of-that-name\" }\n"),
        "access: { token_file: " + YamlText(daemon.Path("nowhere")) + " }\n",
        "tls: { certificate: " + YamlText(daemon.Path("c")) +
            ", key: " + YamlText(daemon.Path("k")) + " }\n"}) {
    daemon.Write("delayd.yaml", text);
    ExpectRefusal(daemon.StartExpectingFailure({"--config", path}), 2, "");
    ExpectRefusal(daemon.StartExpectingFailure({"--config", path, "--check-config"}), 2, path);
    EXPECT_EQ(daemon.Ctl({"config", "check", path}).exit_code, 2) << text;
  }
  daemon.Write("delayd.yaml", "access: { read: root }\n");
  const ProcessResult plain = daemon.Ctl({"config", "check", path});
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_EQ(plain.err, "");
  EXPECT_THAT(plain.out, HasSubstr("is valid"));
  EXPECT_EQ(daemon.CtlOk({"config", "check", path, "-q"}), "");
  EXPECT_EQ(daemon.CtlOk({"config", "check", path, "-q", "-o", "json"}),
            "{\"file\":\"" + path + "\",\"valid\":true,\"remarks\":[]}");
  const std::string tokens = daemon.Write("tokens", "read 0123456789abcdef0123456789abcdef\n");
  daemon.Write("delayd.yaml", "access: { token_file: " + YamlText(tokens) + " }\n");
  const ProcessResult named = daemon.Ctl({"config", "check", path});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  // Root's look at files says nothing of the daemon's.
  EXPECT_THAT(named.err, HasSubstr(geteuid() == 0 ? "runuser -u delayd" : ""));
}

TEST(StartTest, ASettingThatNamesWhatIsNotThereIsNamedWithItsPlace) {
  Daemon daemon;
  const std::string path = daemon.Path("delayd.yaml");
  for (const auto& [text, told] :
       {std::pair<std::string, std::string>{
            "access:\n  read: nobody-of-that-name\n",
            path + ":2:9: access.read: there is no user 'nobody-of-that-name'"},
        {"access:\n  token_file: " + YamlText(daemon.Path("nowhere")) + "\n",
         path + ":2:15: access.token_file: "},
        {"tls:\n  certificate: " + YamlText(daemon.Path("nowhere")) +
             "\n  key: " + YamlText(daemon.Path("nowhere")) + "\n",
         path + ":3:8: tls.key: "}}) {
    daemon.Write("delayd.yaml", text);
    ExpectRefusal(daemon.StartExpectingFailure({"--config", path}), 2, told);
    const ProcessResult checked =
        daemon.StartExpectingFailure({"--config", path, "--check-config"});
    ExpectRefusal(checked, 2, told);
    EXPECT_THAT(checked.err, StartsWith(told));
  }
  daemon.Write("delayd.yaml", "log: { level: info }\n");
  daemon.Under("export DELAYD_ACCESS_ADMIN=nobody-of-that-name");
  ExpectRefusal(daemon.StartExpectingFailure({"--config", path}),
                2,
                "DELAYD_ACCESS_ADMIN: there is no user 'nobody-of-that-name'");
}

TEST(StartTest, AMisspeltVariableIsWarnedOf) {
  Daemon daemon;
  const std::string path = daemon.Write("delayd.yaml", "log: { level: info }\n");
  const auto warning = HasSubstr("did you mean 'DELAYD_LOG_LEVEL'?");
  const ProcessResult checked =
      RunProcess({.argv = {DelaydPath(), "--config", path, "--check-config"},
                  .env = {{"DELAYD_LOG_LEVL", "debug"}}});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.err, warning);
  EXPECT_THAT(checked.out, HasSubstr("is valid"));
  daemon.Under("export DELAYD_LOG_LEVL=debug");
  ASSERT_TRUE(daemon.Start());
  EXPECT_THAT(daemon.log(), warning);
}

// delayctl runs delayd for it, and with -o json there are no words on stderr.
TEST(StartTest, AMisspeltVariableIsNoWordBesideTheJsonOfVerify) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.Stop();
  ProcessOptions verify =
      daemon.CtlOptions({"verify", "--data-dir", daemon.data_dir(), "-o", "json"});
  verify.env["DELAYD_LOG_LEVL"] = "debug";
  const ProcessResult verified = RunProcess(verify);
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_EQ(verified.err, "");
}

// Its number would go to the first file that is opened, which is the lock of the data directory.
TEST(StartTest, AClosedStderrIsNobodyElsesNumber) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string other = daemon.Path("other");
  const ProcessResult refused = RunProcess({.argv = {"/bin/sh",
                                                     "-c",
                                                     "exec \"$@\" 2>&-",
                                                     "sh",
                                                     DelaydPath(),
                                                     "--config",
                                                     "/dev/null",
                                                     "--data-dir",
                                                     other,
                                                     "--api-socket",
                                                     daemon.socket()}});
  EXPECT_EQ(refused.exit_code, 1);
  const std::string lock = ReadFile(other + "/LOCK.delayd");
  EXPECT_NE(lock, "");
  EXPECT_EQ(lock.find("cannot listen"), std::string::npos) << lock;
}

// As in a chroot, which may have no /dev/null to put there. Needs root.
TEST(StartTest, NorIsItWithoutDevices) {
  const std::string hide = "mount -t tmpfs none /dev";
  const std::vector<std::string> alone = {"unshare", "-m", "/bin/sh", "-c"};
  std::vector<std::string> probe = alone;
  probe.push_back(hide);
  if (const ProcessResult probed = RunProcess({.argv = probe}); probed.exit_code != 0) {
    GTEST_SKIP() << "cannot hide /dev: " << probed.err;
  }
  Daemon daemon;
  daemon.Under("exec unshare -m /bin/sh -c '" + hide + " && exec \"$@\" 2>&-' sh \"$@\"");
  ASSERT_TRUE(daemon.Start());
  const std::string fds = "/proc/" + std::to_string(daemon.pid()) + "/fd/";
  EXPECT_EQ(std::filesystem::read_symlink(fds + "2"), "/");
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

TEST(StartTest, AClosedStdinAndStdoutAreNobodyElsesNumbers) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const auto closed = [&](const std::string& what, const std::vector<std::string>& args) {
    ProcessOptions options = daemon.CtlOptions(args);
    options.argv.insert(options.argv.begin(), {"/bin/sh", "-c", "exec \"$@\" " + what, "sh"});
    return RunProcess(options, std::chrono::seconds(30));
  };
  const ProcessResult import = closed("<&-", {"import"});
  EXPECT_EQ(import.signal, 0);
  EXPECT_EQ(import.exit_code, 2);
  EXPECT_THAT(import.err, HasSubstr("cannot be read"));
  const ProcessResult enqueue = closed(">&-", {"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(enqueue.exit_code, 1);
  EXPECT_THAT(enqueue.err, HasSubstr("cannot write to stdout"));
}

// Where a disk is not mounted, its mount point is an empty directory.
TEST(StartTest, P9ANewStoreIsTold) {
  const std::string told = "a new store was made in it";
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.WaitForLog(told);
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.log().find(told), daemon.log().rfind(told)) << daemon.log();
}

TEST(StartTest, AFileAboveTheLimitOnSizesIsAnErrorAndNoSignal) {
  Daemon daemon;
  daemon.Under("ulimit -f 20");
  ExpectRefusal(daemon.StartExpectingFailure(), 3, "File too large");
}

// $$ is the shell's number, and then the daemon's. $3 is the argument of --data-dir.
TEST(StartTest, ADrainAndAReloadDuringTheStartAreDoneBehindIt) {
  Daemon daemon;
  daemon.Under(
      "(until [ -e \"$3/LOCK.delayd\" ]; do kill -0 $$ || exit; done; "
      "kill -USR1 $$; kill -HUP $$) & :");
  ASSERT_TRUE(daemon.Start());
  daemon.WaitForLog("draining: ");
  daemon.WaitForLog("the configuration was reloaded");
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

TEST(StartTest, ADrainAndAReloadDuringTheStopDoNotEndIt) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  daemon.Signal(SIGTERM);
  EXPECT_TRUE(WaitUntil([&] {  // which asks now and then: a flood would leave it no time to stop
    daemon.Signal(SIGUSR1);
    daemon.Signal(SIGHUP);
    return !daemon.running();
  }));
  const ProcessResult result = daemon.Stop();
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, 0) << daemon.log();
}

TEST(StartTest, ItStopsThoughItsParentHasBlockedTheSignals) {
  sigset_t stops;
  sigset_t before;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGTERM);
  ::sigaddset(&stops, SIGINT);
  for (const int signal : {SIGTERM, SIGINT}) {
    Daemon daemon;
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &stops, &before), 0);
    const bool started = daemon.Start();
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
    ASSERT_TRUE(started);
    daemon.Signal(signal);
    daemon.WaitForLog("delayd has ended in order");
  }
}

TEST(StartTest, ASignalThatAsksForNothingDoesNotEndIt) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.Signal(SIGUSR2);
  daemon.CtlOk({"ping"});
  const ProcessResult result = daemon.Stop();
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, 0) << daemon.log();
}

TEST(StartTest, TooFewDescriptorsAreTold) {
  for (const char* limit : {"ulimit -n 16", "ulimit -n 26", "ulimit -n 63"}) {
    Daemon daemon;
    daemon.Under(limit);
    ExpectRefusal(daemon.StartExpectingFailure(), 1, "raise it (ulimit -n");
  }
}

// The sanitizers need more memory than any limit leaves them.
#if !defined(DELAYD_SANITIZED)
TEST(StartTest, TooLittleMemoryForItsThreadsIsTold) {
  Daemon daemon;
  daemon.Under("ulimit -v 110000");
  ExpectRefusal(daemon.StartExpectingFailure(), 1, "ulimit -v");
}
#endif

TEST(StartTest, AMissingConfigFileIsAnError) {
  Daemon daemon;
  ExpectRefusal(
      daemon.StartExpectingFailure({"--config", daemon.Path("nowhere.yaml")}), 2, "nowhere.yaml");
}

// `journalctl -p err` is where the reason is looked for.
TEST(StartTest, ForTheJournalAWrongConfigurationIsAnError) {
  const auto refusal = [](const std::string& stream) {
    return RunProcess({.argv = {"/bin/sh",
                                "-c",
                                "JOURNAL_STREAM=" + stream + " exec \"$1\" --config /nowhere",
                                "sh",
                                DelaydPath()}})
        .err;
  };
  EXPECT_THAT(refusal("$(stat -Lc %d:%i /dev/fd/2)"), StartsWith("<3>/nowhere"));
  EXPECT_THAT(refusal("1:1"), StartsWith("/nowhere")) << "of the shell around it";
}

TEST(StartTest, AWrongFlagGetsAHint) {
  Daemon daemon;
  const ProcessResult result = daemon.StartExpectingFailure({"--data-dri", "x"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--data-dri"));
}

TEST(StartTest, BeyondLoopbackItDoesNotListenWithoutTlsAndTokens) {
  Daemon daemon;
  ExpectRefusal(
      daemon.StartExpectingFailure({"--api-listen", "0.0.0.0:0"}), 2, "needs TLS and tokens");
}

TEST(StartTest, ASocketOfARunningDaemonIsNotTaken) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const ProcessResult result =
      daemon.StartExpectingFailure({"--data-dir", daemon.Path("other-data")});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr(daemon.socket()));
  daemon.CtlOk({"ping"});
}

TEST(StartTest, TheSocketOfAKilledDaemonIsReplaced) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.Kill();
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"ping"});
}

}  // namespace
}  // namespace delayd::test
