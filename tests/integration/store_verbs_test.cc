// verify, recover, backup and restore as an operator does them: the real programs, no shortcut.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/client.h"
#include "protocol/store_json.h"
#include "storage/keys.h"
#include "storage/loss_account.h"
#include "storage/recovery.h"
#include "storage/rocks_job_store.h"
#include "tests/support/daemon.h"

#include <sys/stat.h>

namespace delayd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// The daemon's newest log, without which nothing of the last life is there.
fs::path NewestLog(const std::string& data_dir) {
  fs::path newest;
  for (const auto& file : fs::directory_iterator(data_dir)) {
    if (file.path().extension() == ".log" && file.path() > newest) {
      newest = file.path();
    }
  }
  return newest;
}

// The oldest of a table's files, which tell its name.
fs::path TableFile(const std::string& data_dir, const std::string& table) {
  std::set<fs::path> files;
  for (const auto& file : fs::directory_iterator(data_dir)) {
    if (file.path().extension() == ".sst" &&
        ReadFile(file.path()).find(table) != std::string::npos) {
      files.insert(file.path());
    }
  }
  return files.empty() ? fs::path() : *files.begin();
}

void FlipByte(const fs::path& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 0x40);
  file.seekp(at);
  file.put(byte);
  ASSERT_TRUE(file.good());
}

std::string Snapshot(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& file : fs::recursive_directory_iterator(directory)) {
    // The lock file holds who looked last, and RocksDB keeps a diary of every look.
    const std::string name = file.path().filename();
    if (file.is_regular_file() && !name.starts_with("LO")) {
      files[file.path()] = ReadFile(file.path());
    }
  }
  std::string all;
  for (const auto& [name, content] : files) {
    all += name + "\n" + content + "\n";
  }
  return all;
}

std::set<std::string> Ids(Daemon* daemon) {
  std::istringstream lines(daemon->CtlOk({"list", "--all", "-q"}));
  std::set<std::string> ids;
  for (std::string id; std::getline(lines, id);) {
    ids.insert(id);
  }
  return ids;
}

// A damaged index row: what verify can repair.
void DropIndexRow(const std::string& data_dir, uint64_t id) {
  auto store = storage::OpenRocksJobStore({.path = data_dir});
  ASSERT_TRUE(store.ok()) << store.status().message();
  storage::Batch batch;
  batch.Delete(storage::Table::kIndex, storage::IndexKey(JobId{id}));
  ASSERT_TRUE((*store)->Commit(batch).ok());
  ASSERT_TRUE((*store)->Close().ok());
}

TEST(VerifyVerbTest, P9ARunningDaemonFindsItsStoreWhole) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "--key", "k", "x"});
  EXPECT_THAT(daemon.CtlOk({"verify"}), HasSubstr("the store is whole"));
  const auto result = protocol::ParseVerifyResult(daemon.CtlOk({"verify", "-o", "json"}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->pending, 1U);
  EXPECT_EQ(result->disagreements, 0U);
  EXPECT_EQ(daemon.CtlOk({"verify", "-q"}), "");
}

TEST(VerifyVerbTest, P9ADisagreementIsNamedOnlineAndOfflineAndRepaired) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string id = daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  DropIndexRow(daemon.data_dir(), std::stoull(id));

  const std::string before = Snapshot(daemon.data_dir());
  ProcessResult result = daemon.Ctl({"verify", "--data-dir", daemon.data_dir()});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("job " + id));
  EXPECT_THAT(result.out,
              ::testing::ContainsRegex("verify --data-dir '?" + daemon.data_dir() + "'? --repair"));
  EXPECT_EQ(Snapshot(daemon.data_dir()), before) << "verify alone changes nothing";

  ASSERT_TRUE(daemon.Start());
  result = daemon.Ctl({"verify"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("job " + id));
  EXPECT_EQ(daemon.Stop().exit_code, 0);

  result = daemon.Ctl({"verify", "--data-dir", daemon.data_dir(), "--repair", "-o", "json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto repaired = protocol::ParseVerifyResult(result.out);
  ASSERT_TRUE(repaired.ok()) << result.out;
  EXPECT_EQ(repaired->disagreements, 1U);
  EXPECT_EQ(repaired->repaired, 1U);

  ASSERT_TRUE(daemon.Start());
  EXPECT_THAT(daemon.CtlOk({"verify"}), HasSubstr("whole"));
  daemon.CtlOk({"cancel", id});
}

TEST(VerifyVerbTest, UsageAndPlacesThatCannotBeAreToldWithACure) {
  Daemon daemon;
  ProcessResult result = daemon.Ctl({"verify", "--repair"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--data-dir"));
  daemon.Write("file", "x");
  for (const char* name : {"nowhere", "file"}) {
    result = daemon.Ctl({"verify", "--data-dir", daemon.Path(name)});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr(daemon.Path(name)));
  }
  EXPECT_FALSE(fs::exists(daemon.Path("nowhere"))) << "a look makes no directory";
  result = daemon.Ctl({"verify"});
  EXPECT_EQ(result.exit_code, 5) << result.err;
}

TEST(VerifyVerbTest, P9WhereNoStoreIsNoneIsMadeAndNoneIsCalledWhole) {
  Daemon daemon;
  const std::string mount_point = daemon.Path("mount_point");
  fs::create_directory(mount_point);
  for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{
           {"verify"}, {"verify", "--repair"}, {"recover"}, {"recover", "--accept-loss"}}) {
    std::vector<std::string> args = verb;
    args.insert(args.end(), {"--data-dir", mount_point});
    const ProcessResult result = daemon.Ctl(args);
    EXPECT_EQ(result.exit_code, 3) << result.out;
    EXPECT_THAT(result.err, HasSubstr(mount_point + " holds no store; is its disk mounted?"));
    EXPECT_TRUE(fs::is_empty(mount_point));
  }
}

TEST(VerifyVerbTest, ADirectoryInUseIsRefused) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  for (const char* verb : {"verify", "recover"}) {
    const ProcessResult result = daemon.Ctl({verb, "--data-dir", daemon.data_dir()});
    EXPECT_EQ(result.exit_code, 4) << result.err;
    EXPECT_THAT(result.err, HasSubstr("in use"));
    EXPECT_THAT(result.err, Not(HasSubstr("another data_dir"))) << "that is no cure here";
  }
}

TEST(RecoverVerbTest, P9NothingToRecoverIsSaid) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  daemon.Kill();
  const ProcessResult result = daemon.Ctl({"recover", "--data-dir", daemon.data_dir()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("nothing acknowledged is lost in the logs"));
  EXPECT_EQ(daemon.Ctl({"recover"}).exit_code, 2);
}

TEST(RecoverVerbTest, P9DamageIsShownFirstAndGivenUpOnlyAtTheOperatorsWord) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string kept = daemon.CtlOk({"enqueue", "--in", "1h", "--key", "kept", "x"});
  const std::string acked = daemon.CtlOk({"enqueue", "--in", "1h", "--key", "gone", "x"});
  daemon.Kill();
  ASSERT_TRUE(daemon.Start());
  const std::string lost = daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  daemon.CtlOk({"cancel", acked});
  daemon.CtlOk({"reschedule", kept, "--in", "2h"});
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  daemon.Kill();
  const fs::path log = NewestLog(daemon.data_dir());
  FlipByte(log, 60);

  ProcessResult result = daemon.StartExpectingFailure();
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_THAT(result.err, HasSubstr("delayctl recover"));
  result = daemon.Ctl({"verify", "--data-dir", daemon.data_dir()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("damaged"));

  const std::string before = Snapshot(daemon.data_dir());
  result = daemon.Ctl({"recover", "--data-dir", daemon.data_dir(), "-o", "json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  auto loss = protocol::ParseRecoverResult(result.out);
  ASSERT_TRUE(loss.ok()) << result.out;
  EXPECT_TRUE(loss->damaged);
  EXPECT_FALSE(loss->changed);
  EXPECT_GT(loss->lost_batches, 0U);
  EXPECT_THAT(loss->gone, ::testing::Contains(JobId{std::stoull(lost)}));
  EXPECT_THAT(loss->older, ::testing::Contains(JobId{std::stoull(kept)}));
  EXPECT_THAT(loss->revived, ::testing::Contains(JobId{std::stoull(acked)}));
  EXPECT_FALSE(loss->lists_complete) << "the damaged batch itself cannot be read";
  EXPECT_EQ(Snapshot(daemon.data_dir()), before) << "without --accept-loss nothing is changed";
  EXPECT_EQ(daemon.StartExpectingFailure().exit_code, 5);

  result = daemon.Ctl({"recover", "--data-dir", daemon.data_dir(), "--accept-loss"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("jobs gone"));
  EXPECT_THAT(result.out, HasSubstr("at least one batch that cannot be read"));
  EXPECT_THAT(result.out, HasSubstr(lost));
  EXPECT_FALSE(fs::is_empty(daemon.data_dir() + "/damaged")) << "the log is copied aside";

  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(Ids(&daemon), (std::set<std::string>{kept, acked}));
  EXPECT_THAT(daemon.CtlOk({"verify"}), HasSubstr("whole"));
}

// As by a job that cleans up *.log. The id of the job that is left.
std::string LoseTheNewestLog(Daemon* daemon) {
  EXPECT_TRUE(daemon->Start());
  std::string kept = daemon->CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(daemon->Stop().exit_code, 0);
  EXPECT_TRUE(daemon->Start());
  daemon->CtlOk({"enqueue", "--in", "1h", "y"});
  daemon->Kill();
  fs::remove(NewestLog(daemon->data_dir()));
  return kept;
}

ProcessResult IntoAFullDisk(std::vector<std::string> command) {
  command.insert(command.begin(), {"/bin/sh", "-c", "exec \"$@\" > /dev/full", "sh"});
  return RunProcess({.argv = std::move(command)});
}

TEST(RecoverVerbTest, P9ALogThatWasRemovedIsMissedAndNoCopyOfItIsPromised) {
  Daemon daemon;
  const std::string kept = LoseTheNewestLog(&daemon);
  const ProcessResult refused = daemon.StartExpectingFailure();
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.err, HasSubstr("its newest log was cut or lost"));
  // A loss that could not be told is told again before the store opens.
  const ProcessResult untold =
      IntoAFullDisk({DelaydPath(), "--recover", "--accept-loss", "--data-dir", daemon.data_dir()});
  EXPECT_EQ(untold.exit_code, 1);
  EXPECT_THAT(untold.err, HasSubstr("cannot write to stdout"));
  EXPECT_EQ(daemon.StartExpectingFailure().exit_code, 5);
  const ProcessResult result =
      daemon.Ctl({"recover", "--data-dir", daemon.data_dir(), "--accept-loss"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("the store opens again"));
  EXPECT_THAT(result.out, Not(HasSubstr("damaged/")));
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(Ids(&daemon), (std::set<std::string>{kept}));
}

TEST(RecoverVerbTest, P9ALossThatStdoutDoesNotTakeIsToldOnStderr) {
  Daemon daemon;
  LoseTheNewestLog(&daemon);
  const ProcessResult result =
      IntoAFullDisk({DelayctlPath(), "recover", "--accept-loss", "--data-dir", daemon.data_dir()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("write to stdout"), HasSubstr("the store opens again")));
}

// Its log is all there is of it, and what a store's life begins with stands in there too.
TEST(RecoverVerbTest, P9AStoreThatNeverStoppedOpensAgainAfterItsFirstBatchIsLost) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string lost = daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  daemon.Kill();
  FlipByte(NewestLog(daemon.data_dir()), 20);
  EXPECT_EQ(daemon.StartExpectingFailure().exit_code, 5);
  const ProcessResult result =
      daemon.Ctl({"recover", "--data-dir", daemon.data_dir(), "--accept-loss"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("jobs gone (1): " + lost));
  EXPECT_THAT(result.out, HasSubstr("the file as it was is damaged/"));
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(Ids(&daemon), std::set<std::string>());
  EXPECT_GT(std::stoull(daemon.CtlOk({"enqueue", "--in", "1h", "y"})), std::stoull(lost));
}

// To give up what stood in the log would not open it: the operator hears of both before.
TEST(RecoverVerbTest, P9ALookAtDamagedLogsSaysThatTheTablesCannotBeReadEither) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "y"});
  daemon.CtlOk({"enqueue", "--in", "1h", "z"});
  daemon.Kill();
  FlipByte(NewestLog(daemon.data_dir()), 20);
  const fs::path table = TableFile(daemon.data_dir(), "by_queue");
  fs::remove(table);
  const ProcessResult look = daemon.Ctl({"recover", "--data-dir", daemon.data_dir()});
  EXPECT_EQ(look.exit_code, 1);
  EXPECT_THAT(look.out, HasSubstr("the tables were not looked at: "));
  EXPECT_THAT(look.out, HasSubstr(table.filename().string()));
  EXPECT_THAT(look.out, HasSubstr("the store would not open after the loss either"));
  EXPECT_THAT(look.out, AllOf(HasSubstr("there may be more: "), Not(HasSubstr("--accept-loss"))));
  const std::string before = Snapshot(daemon.data_dir());
  const ProcessResult refused =
      daemon.Ctl({"recover", "--data-dir", daemon.data_dir(), "--accept-loss"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("nothing was changed: "));
  EXPECT_EQ(Snapshot(daemon.data_dir()), before);
}

// A block of rows, which an open does not read.
TEST(RecoverVerbTest, P9ADamagedTableFileIsToldBeforeALossIsAcceptedAndNotCalledMended) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  FlipByte(TableFile(daemon.data_dir(), "timers"), 0);
  const std::vector<std::string> recover = {"recover", "--data-dir", daemon.data_dir()};
  ProcessResult result = daemon.Ctl(recover);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("a table file is damaged: timers: "));
  EXPECT_THAT(result.out, HasSubstr("which no recovery mends: restore a backup"));
  ASSERT_TRUE(storage::BeginRecovery(daemon.data_dir(), {.lost_batches = 1}).ok());
  EXPECT_THAT(daemon.Ctl(recover).out, HasSubstr("since no recovery mends table files"));
  std::vector<std::string> accept = recover;
  accept.emplace_back("--accept-loss");
  result = daemon.Ctl(accept);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("the daemon may refuse to start"));
  EXPECT_THAT(result.out, Not(HasSubstr("the store opens again")));
}

// Of a table whose fourth file is its first merge. Started again it would end again, for ever.
TEST(VerifyVerbTest, P9DamageThatACompactionMeetsEndsTheDaemonAsDamage) {
  Daemon daemon;
  for (int table_files = 0; table_files < 3; ++table_files) {
    ASSERT_TRUE(daemon.Start());
    daemon.CtlOk({"enqueue", "--in", "1h", "x"});
    table_files == 0 ? (void)daemon.Stop() : daemon.Kill();
  }
  FlipByte(TableFile(daemon.data_dir(), "by_queue"), 0);
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  daemon.Ctl({"backup", daemon.Path("backup")});  // begins with a flush, and may meet it already
  EXPECT_TRUE(WaitUntil([&daemon] {
    daemon.Ctl({"enqueue", "--in", "1h", "x"});
    return !daemon.running();
  }));
  EXPECT_EQ(daemon.Stop().exit_code, 5);
  EXPECT_THAT(daemon.log(), HasSubstr("does not go on in memory code=damaged_store"));
}

// Killed when it had begun, on a store that had lost nothing.
TEST(RecoverVerbTest, P9AStoreThatAnEarlierOneLeftShutIsNotCalledWell) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  ASSERT_TRUE(storage::BeginRecovery(daemon.data_dir(), {}).ok());
  EXPECT_EQ(daemon.StartExpectingFailure().exit_code, 5);

  const ProcessResult result = daemon.Ctl({"recover", "--data-dir", daemon.data_dir()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, Not(HasSubstr("nothing acknowledged is lost")));
  EXPECT_THAT(result.out, HasSubstr("an earlier recovery was cut short"));
  EXPECT_THAT(result.out, HasSubstr("--accept-loss"));

  EXPECT_THAT(daemon.CtlOk({"recover", "--data-dir", daemon.data_dir(), "--accept-loss"}),
              HasSubstr("nothing acknowledged is lost"));
  EXPECT_TRUE(daemon.Start());
}

// delayctl --accept-loss beside a delayd that tells `result` and then runs `script`.
ProcessResult RecoverWith(const protocol::RecoverResult& result, const std::string& script) {
  const TempDir dir;
  fs::copy_file(DelayctlPath(), dir.Sub("delayctl"));
  WriteFile(dir.Sub("delayd"),
            "#!/bin/sh\necho '" + protocol::StoreLineToJson(result) + "'\n" + script + "\n");
  fs::permissions(dir.Sub("delayd"), fs::perms::owner_all);
  return RunProcess(
      {.argv = {dir.Sub("delayctl"), "recover", "--data-dir", dir.path(), "--accept-loss"}});
}

// When it has told the loss, and is not done.
TEST(RecoverVerbTest, P9ARecoveryThatWasKilledIsNotTakenForDone) {
  const ProcessResult told = RecoverWith({.changed = true}, "kill -9 $$");
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_THAT(told.err, HasSubstr("delayd ended with signal 9 before it was done; run it again"));
}

// A terminal gives the signal to both.
TEST(RecoverVerbTest, P9WhoInterruptsARecoveryIsToldHowToEndIt) {
  const ProcessResult told = RecoverWith({.changed = true}, "kill -INT $PPID; kill -9 $$");
  EXPECT_EQ(told.exit_code, 130);
  EXPECT_THAT(told.err, HasSubstr("may be half done"));
  EXPECT_THAT(told.err, HasSubstr("the same command ends it"));
  // Where only delayctl gets it, delayd is waited for.
  EXPECT_EQ(RecoverWith({.changed = true}, "kill -INT $PPID").exit_code, 0);
}

TEST(RecoverVerbTest, P9AListThatCannotNameAllIsNotCountedAsIfItDid) {
  protocol::RecoverResult result{.damaged = true, .changed = true, .gone = {JobId{1}, JobId{2}}};
  EXPECT_THAT(RecoverWith(result, "").out, HasSubstr("jobs gone (2): 1 2\n"));
  result.lists_capped = true;
  EXPECT_THAT(RecoverWith(result, "").out, HasSubstr("jobs gone (2 or more): 1 2\n"));
}

TEST(RecoverVerbTest, FilesOfAnotherOwnerStayTheirs) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root may act for another owner";
  }
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chmod(fs::path(daemon.data_dir()).parent_path().c_str(), 0755), 0);
  ASSERT_EQ(::chown(daemon.data_dir().c_str(), kNobody, kNobody), 0);
  for (const auto& file : fs::directory_iterator(daemon.data_dir())) {
    ASSERT_EQ(::chown(file.path().c_str(), kNobody, kNobody), 0);
  }
  daemon.CtlOk({"verify", "--data-dir", daemon.data_dir(), "--repair"});
  daemon.CtlOk({"recover", "--data-dir", daemon.data_dir(), "--accept-loss"});
  for (const auto& file : fs::recursive_directory_iterator(daemon.data_dir())) {
    struct stat info {};

    ASSERT_EQ(::stat(file.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, kNobody) << file.path();
  }
}

// Found out when the recovery had begun, it would leave the store shut.
TEST(RecoverVerbTest, P9ALogThatMayNotBeWrittenIsToldBeforeAnythingIsBegun) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  daemon.CtlOk({"enqueue", "--in", "1h", "y"});
  daemon.Kill();
  const fs::path log = NewestLog(daemon.data_dir());
  FlipByte(log, 20);
  ASSERT_EQ(::chmod(log.c_str(), 0400), 0);
  ProcessOptions options =
      daemon.CtlOptions({"recover", "--accept-loss", "--data-dir", daemon.data_dir()});
  if (::geteuid() == 0) {  // who may write everywhere
    options.argv.insert(options.argv.begin(),
                        {"setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"});
  }
  const ProcessResult refused = RunProcess(options);
  EXPECT_EQ(refused.exit_code, 7);
  EXPECT_THAT(refused.err, HasSubstr("nothing was changed: cannot cut " + log.string()));
  EXPECT_THAT(refused.err, HasSubstr("chmod -R u+rwX"));
  EXPECT_FALSE(fs::exists(daemon.data_dir() + "/RECOVERY"));
  ASSERT_EQ(::chmod(log.c_str(), 0600), 0);
  EXPECT_THAT(daemon.CtlOk({"recover", "--accept-loss", "--data-dir", daemon.data_dir()}),
              HasSubstr("the store opens again"));
}

// "is its disk mounted?" would send people to look for a disk.
TEST(VerifyVerbTest, ADirectoryBehindAClosedOneIsNotCalledMissing) {
  const Daemon daemon;
  const std::string closed = daemon.Path("closed");
  fs::create_directories(closed + "/data");
  ASSERT_EQ(::chmod(closed.c_str(), 0), 0);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"verify"}, {"doctor"}}) {
    ProcessOptions options = daemon.CtlOptions(words);
    options.argv.insert(options.argv.end(), {"--data-dir", closed + "/data"});
    if (::geteuid() == 0) {  // who may look everywhere
      options.argv.insert(options.argv.begin(),
                          {"setpriv",
                           "--bounding-set=-dac_override,-dac_read_search",
                           "--inh-caps=-dac_override,-dac_read_search"});
    }
    const ProcessResult result = RunProcess(options);
    const bool is_doctor = words.front() == "doctor";
    EXPECT_EQ(result.exit_code, is_doctor ? 1 : 7);
    EXPECT_THAT(is_doctor ? result.out : result.err,
                HasSubstr(is_doctor ? "run it as the daemon's user" : "run as the owner"));
  }
  ASSERT_EQ(::chmod(closed.c_str(), 0700), 0);
}

TEST(BackupVerbTest, P1EverythingAcknowledgedBeforeIsInABackupTakenUnderTraffic) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> last_acknowledged = 0;
  std::thread traffic([&] {
    auto client = protocol::Client::Create("unix:" + daemon.socket());
    ASSERT_TRUE(client.ok());
    while (!stop) {
      const auto response = (*client)->Call("POST",
                                            "/v1/jobs",
                                            "application/json",
                                            R"({"queue":"q","delay":"1h","payload":"x"})",
                                            Millis(30'000));
      ASSERT_TRUE(response.ok()) << response.status().message();
      ASSERT_EQ(response->status, 201) << response->body;
      ++last_acknowledged;  // ids are given in order
    }
  });
  while (last_acknowledged < 200) {
    std::this_thread::yield();
  }
  const uint64_t before = last_acknowledged;
  const std::string copy = daemon.Path("copy");
  EXPECT_THAT(daemon.CtlOk({"backup", copy}), HasSubstr("backed up to " + copy));
  const uint64_t after = last_acknowledged;
  while (last_acknowledged < after + 50) {
    std::this_thread::yield();
  }
  stop = true;
  traffic.join();
  daemon.Kill();

  EXPECT_EQ(fs::status(copy).permissions(), fs::perms::owner_all) << "payloads are in there";
  EXPECT_THAT(daemon.CtlOk({"verify", "--data-dir", copy}), HasSubstr("whole"));
  ASSERT_TRUE(daemon.Start({"--data-dir", copy}));
  const std::set<std::string> ids = Ids(&daemon);
  for (uint64_t id = 1; id <= before; ++id) {
    EXPECT_TRUE(ids.contains(std::to_string(id))) << id;
  }
  EXPECT_GE(ids.size(), before);
  EXPECT_THAT(daemon.CtlOk({"verify"}), HasSubstr("whole"));
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

TEST(BackupVerbTest, PlacesThatCannotBeAreToldWithACure) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  ProcessResult result = daemon.Ctl({"backup", "relative/path"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("absolute"));
  EXPECT_EQ(daemon.Ctl({"backup"}).exit_code, 2);
  result = daemon.Ctl({"backup", daemon.data_dir()});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("exists"));
  result = daemon.Ctl({"backup", daemon.Path("no/such/parent")});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("make the directory"));
  daemon.Write("file", "x");
  result = daemon.Ctl({"backup", daemon.Path("file/copy")});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("Not a directory"));
  result = daemon.Ctl({"backup", daemon.Path("copy-\xff")});
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr("is not UTF-8"));
  result = daemon.Ctl({"backup", "/proc/copy"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("damaged")));
  result = daemon.Ctl({"backup", daemon.Path(std::string(254, 'n'))});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("File name too long; name a directory elsewhere"));
  daemon.CtlOk({"backup", daemon.Path("first")});
  result = daemon.Ctl({"backup", daemon.Path("first/second")});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("is a store or a backup itself"));
  daemon.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_EQ(daemon.Stop().exit_code, 0) << "no refused backup stops the daemon";
  EXPECT_EQ(daemon.Ctl({"backup", daemon.Path("copy")}).exit_code, 5);
}

TEST(BackupVerbTest, ResultsComeAsJsonToo) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const auto result =
      protocol::ParseBackupResult(daemon.CtlOk({"backup", daemon.Path("copy"), "-o", "json"}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->dir, daemon.Path("copy"));
  EXPECT_GT(result->bytes, 0U);
  EXPECT_EQ(daemon.CtlOk({"backup", daemon.Path("copy2"), "-q"}), "");
}

}  // namespace
}  // namespace delayd::test
