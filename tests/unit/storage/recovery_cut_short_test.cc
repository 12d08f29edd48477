// A recovery that gives up acknowledged batches and is killed on its way: the store stays shut
// until it is done, and what is lost stays known.
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "storage/batch_floor.h"
#include "tests/unit/storage/recovery_fixture.h"
#include "tests/unit/storage/small_disk.h"

namespace delayd::storage {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class RecoveryCutShortTest : public RecoveryTest {
 protected:
  void ExpectShut() {
    const Status refused = Open().status();
    EXPECT_EQ(refused.reason(), "damaged_store");
    EXPECT_THAT(refused.message(), HasSubstr("run delayctl recover --accept-loss again"));
    EXPECT_EQ(OpenRocksJobReader({.path = path(), .env = env_.get()}).status().message(),
              refused.message());
  }

  void ExpectSameLoss(const RecoveryReport& expected) const {
    EXPECT_EQ(report_.lost_batches, expected.lost_batches);
    EXPECT_EQ(report_.lost_jobs, expected.lost_jobs);
    EXPECT_EQ(report_.ended_jobs, expected.ended_jobs);
    EXPECT_EQ(report_.lost_ids_end, expected.lost_ids_end);
    EXPECT_THAT(report_.Lines(), Contains(HasSubstr("an earlier recovery was cut short")));
    EXPECT_THAT(report_.Lines(), Contains(HasSubstr("lost by the operator's word")));
  }

  // As a kill within a flush or a merge of tables leaves it.
  void LeaveTableFile() const { WriteFile(path() + "/000099.sst", "half of a table"); }

  fs::path TableFile() const {
    fs::directory_iterator file(path());
    while (file->path().extension() != ".sst") {
      ++file;
    }
    return file->path();
  }

  std::string account() const { return path() + "/RECOVERY"; }
};

TEST_F(RecoveryCutShortTest, P9BehindItsCutsTheStoreStaysShutUntilItIsDone) {
  DamageMiddle();
  RecoveryReport killed;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kAcceptLoss, &killed).ok());
  ASSERT_GT(killed.lost_batches, 0U);
  EXPECT_EQ(killed.lost_ids_end, 31U);
  for (int run = 0; run < 2; ++run) {  // the second is killed when the store is open
    ExpectShut();
    EXPECT_TRUE(Open(true).ok());
    ExpectSameLoss(killed);
  }
  ASSERT_TRUE(EndRecovery(path()).ok());
  ASSERT_TRUE(EndRecovery(path()).ok()) << "once more does no harm";
  EXPECT_TRUE(Open().ok());
  EXPECT_THAT(report_.Lines(), Not(Contains(HasSubstr("cut short"))));
}

TEST_F(RecoveryCutShortTest, P9AnAccountThatCannotBeReadIsNamed) {
  DamageMiddle();
  RecoveryReport killed;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kAcceptLoss, &killed).ok());
  // Its first page is nobody's: read(2) says EIO, as with a failing disk.
  fs::remove(account());
  fs::create_symlink("/proc/self/mem", account());
  for (const bool accept_loss : {false, true}) {
    const Status refused = Open(accept_loss).status();
    EXPECT_EQ(refused.reason(), "storage_io");
    EXPECT_THAT(refused.message(), HasSubstr("cannot read " + account() + ": Input/output error"));
  }
}

// Else it would be taken for one that a cut MANIFEST has forgotten, and the store stay shut for
// good. With the first batch damaged no log is left to tell that the MANIFEST is whole.
TEST_F(RecoveryCutShortTest, P9KilledInItsFlushItIsEndedByTheNextOne) {
  for (const bool first_batch : {false, true}) {
    fs::remove_all(path());
    Commit(1, 2 * kBatchFloorStep);
    const std::string whole = ReadFile(Log());
    WriteFile(Log(), Flipped(whole, first_batch ? 10 : whole.size() / 3));
    RecoveryReport killed;
    ASSERT_TRUE(RecoverLogs(path(), LogRepair::kAcceptLoss, &killed).ok());
    LeaveTableFile();
    ExpectShut();
    const Status ended = Open(true).status();
    EXPECT_TRUE(ended.ok()) << ended.message();
    ExpectSameLoss(killed);
  }
}

TEST_F(RecoveryCutShortTest, P9WhatAKilledFlushLeftOverHindersNoRecovery) {
  Commit(1, 2 * kBatchFloorStep);
  const std::string whole = ReadFile(Log());
  WriteFile(Log(), Flipped(whole, whole.size() / 3));
  LeaveTableFile();
  EXPECT_TRUE(OpenRocksJobReader({.path = path(), .env = env_.get(), .accept_loss = true}).ok());
  const auto store = Open(true);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_LT(report_.batch_number, report_.batch_number_floor);
  EXPECT_EQ(Jobs(**store).size(), report_.batch_number);
}

TEST_F(RecoveryCutShortTest, P9BetweenTwoCutsNothingThatIsLostIsForgotten) {
  Commit(1, 20);
  const std::string log = SplitLog();
  const std::string older = ReadFile(log);
  const std::string damaged = Flipped(older, older.size() / 2);
  WriteFile(log, damaged);
  RecoveryReport killed;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kAcceptLoss, &killed).ok());
  ASSERT_EQ(killed.cuts.size(), 2U);
  WriteFile(log, damaged);  // of the two the newest was cut
  ExpectShut();
  EXPECT_TRUE(Open(true).ok());
  ExpectSameLoss(killed);
  EXPECT_TRUE(Open(true).ok()) << "and again, when both are";
  ExpectSameLoss(killed);
}

TEST_F(RecoveryCutShortTest, P9WhatIsShownAfterItIsWhatWasLost) {
  DamageMiddle();
  RecoveryReport killed;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kAcceptLoss, &killed).ok());
  EXPECT_TRUE(
      OpenRocksJobReader({.path = path(), .env = env_.get(), .accept_loss = true}, &report_).ok());
  ExpectSameLoss(killed);
  ExpectShut();
}

TEST_F(RecoveryCutShortTest, P9ALogThatEndedTooEarlyIsToldAgain) {
  Commit(1, 2 * kBatchFloorStep);
  const std::string log = ReadFile(Log());
  WriteFile(Log(), log.substr(0, *ScanLog(Flipped(log, log.size() / 3)).damaged_at + 3));
  for (int run = 0; run < 2; ++run) {
    EXPECT_TRUE(Open(true).ok());
    EXPECT_THAT(report_.Lines(), Not(Contains(HasSubstr("unanswered"))));
    EXPECT_LT(report_.batch_number, report_.batch_number_floor) << run;
    ExpectShut();
  }
}

TEST_F(RecoveryCutShortTest, P9WhereNothingCouldBeCopiedNothingIsBegun) {
  DamageMiddle();
  const std::string log = Log();
  const std::string damaged = ReadFile(log);
  WriteFile(newer_log(), "and a newer one");
  WriteFile(path() + "/damaged", "a file where the directory should be");
  EXPECT_EQ(Open(true).status().reason(), "storage_io");
  EXPECT_EQ(ReadFile(log), damaged);
  EXPECT_EQ(ReadFile(newer_log()), "and a newer one");
  EXPECT_THAT(Open().status().message(), HasSubstr(fs::path(log).filename().string()));
}

TEST_F(RecoveryCutShortTest, P9ACopyThatFindsNoRoomIsTakenAwayAndNothingIsBegun) {
  DamageMiddle();
  const std::string log = Log();
  const std::string damaged = ReadFile(log);
  const std::string copy = path() + "/damaged/" + fs::path(log).filename().string() + "." +
                           std::to_string(*ScanLog(damaged).damaged_at);
  fs::create_directory(path() + "/damaged");
  fs::create_symlink("/dev/full", copy);
  const Status full = Open(true).status();
  EXPECT_EQ(full.reason(), "disk_full");
  EXPECT_THAT(full.message(), HasSubstr("free some space"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(copy)));
  EXPECT_EQ(ReadFile(log), damaged);
  EXPECT_FALSE(fs::exists(account()));
  EXPECT_TRUE(Open(true).ok()) << "when there is room";
}

// It would fail when the logs are cut, and the loss would stay untold.
TEST_F(RecoveryCutShortTest, P9ADiskWithoutRoomForAllOfItIsToldBeforeItBegins) {
  DamageMiddle();
  const std::string damaged = ReadFile(Log());
  const std::unique_ptr<rocksdb::Env> env =
      rocksdb::NewCompositeEnv(std::make_shared<SmallDisk>(uint64_t{2} << 20));
  const Status refused =
      OpenRocksJobStore({.path = path(), .env = env.get(), .accept_loss = true}).status();
  EXPECT_EQ(refused.reason(), "disk_full");
  EXPECT_THAT(refused.message(), HasSubstr("nothing was changed: the disk of " + path()));
  EXPECT_EQ(ReadFile(Log()), damaged);
  EXPECT_FALSE(fs::exists(path() + "/damaged"));
  EXPECT_FALSE(fs::exists(account()));
}

// Whoever puts the file back has lost nothing, and the next start still says which file it is.
TEST_F(RecoveryCutShortTest, P9WhereATableFileIsMissingNothingIsGivenUpAndNothingBegun) {
  Commit(1, 5);
  Commit(6, 10);
  const fs::path table = TableFile();
  fs::rename(table, dir_.Sub("aside"));
  for (const bool accept_loss : {true, false}) {
    EXPECT_THAT(Open(accept_loss).status().message(), HasSubstr(table.filename().string()));
    EXPECT_FALSE(fs::exists(account()));
  }
  fs::rename(dir_.Sub("aside"), table);
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(Jobs(**store).size(), 10U);
}

TEST_F(RecoveryCutShortTest, P9OfAStoreOfANewerSchemaNothingIsGivenUp) {
  Commit(1, 5);
  {
    const auto store = Open();
    Batch newer;
    newer.Put(Table::kMeta, kSchemaKey, EncodeNumber(kSchemaKey, kSchemaVersion + 1));
    ASSERT_TRUE((*store)->Commit(newer).ok());
    for (uint64_t number = 6; number <= 10; ++number) {
      Batch batch;
      batch.Put(Table::kTimers, Key(number), std::string(20, 'x'));
      batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
      ASSERT_TRUE((*store)->Commit(batch).ok());
    }
  }
  const std::string log = Log();
  const std::string damaged = Flipped(ReadFile(log), fs::file_size(log) * 2 / 3);
  WriteFile(log, damaged);
  EXPECT_EQ(Open(/*accept_loss=*/true).status().reason(), "newer_schema");
  EXPECT_FALSE(fs::exists(account()));
  EXPECT_EQ(ReadFile(log), damaged);
}

TEST_F(RecoveryCutShortTest, P9ATableFileThatIsMissingBehindALossIsFoundBeforeAnythingIsCut) {
  Commit(1, 5);
  DamageMiddle();
  const std::string log = Log();
  const std::string damaged = ReadFile(log);
  const fs::path table = TableFile();
  fs::rename(table, dir_.Sub("aside"));
  const Status refused = Open(true).status();
  EXPECT_EQ(refused.reason(), "damaged_store");
  EXPECT_THAT(refused.message(), HasSubstr("nothing was changed: "));
  EXPECT_THAT(refused.message(), HasSubstr(table.filename().string()));
  EXPECT_EQ(ReadFile(log), damaged);
  EXPECT_FALSE(fs::exists(account()));
  fs::rename(dir_.Sub("aside"), table);
  EXPECT_TRUE(Open(true).ok());
}

TEST_F(RecoveryCutShortTest, P9AnAccountThatMakesNoSenseIsToldAndKeepsTheStoreShut) {
  DamageMiddle();
  ASSERT_TRUE(Open(true).ok());
  const std::string whole = ReadFile(account());
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() - 1), Flipped(whole, 14)}) {
    WriteFile(account(), text);
    ExpectShut();
    ASSERT_TRUE(Open(true).ok());
    EXPECT_THAT(report_.Lines(), Contains(HasSubstr("cannot be read any more")));
  }
}

TEST_F(RecoveryCutShortTest, ABackupAndItsRestoreKnowNothingOfIt) {
  DamageMiddle();
  auto store = Open(true);
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(BackUpRocksJobStore(store->get(), dir_.Sub("backup")).ok());
  EXPECT_TRUE(OpenRocksJobStore({.path = dir_.Sub("backup"), .env = env_.get()}).ok());
}

}  // namespace
}  // namespace delayd::storage
