// What an open makes of damaged logs: a torn tail is cut and reported, damage is refused and named.
#include "storage/recovery.h"

#include <memory>
#include <string>
#include <vector>

#include <rocksdb/db.h>

#include "storage/batch_floor.h"
#include "tests/support/plain_tables.h"
#include "tests/unit/storage/recovery_fixture.h"

namespace delayd::storage {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(RecoveryTest, LogOfAStoreScansWhole) {
  Commit(1, 9);
  const LogScan scan = *ScanLogFile(Log());
  EXPECT_EQ(scan.records, 10U) << "the schema and nine batches";
  EXPECT_FALSE(scan.damaged_at.has_value());
}

TEST_F(RecoveryTest, P9ScanFindsEveryFlippedByteAndCountsWhatStandsBehind) {
  Commit(1, 12);
  const std::string log = ReadFile(Log());
  const uint64_t records = ScanLog(log).records;
  uint64_t last_start = 0;
  uint64_t before = 0;
  for (size_t at = 0; at < log.size(); ++at) {
    const LogScan scan = ScanLog(Flipped(log, at));
    ASSERT_TRUE(scan.damaged_at.has_value()) << "byte " << at;
    EXPECT_LE(*scan.damaged_at, at);
    EXPECT_EQ(scan.records + 1 + scan.records_behind, records) << "byte " << at;
    EXPECT_GE(scan.records, before) << "the damage is in the first record that is not whole";
    before = scan.records;
    last_start = *scan.damaged_at;
  }
  EXPECT_EQ(before, records - 1);
  EXPECT_LT(last_start, log.size());
}

TEST_F(RecoveryTest, P9ScanFindsEveryFlippedByteOfRecordsThatCrossBlocks) {
  Commit(1, 5, 40'000);
  const std::string log = ReadFile(Log());
  const uint64_t records = ScanLog(log).records;
  for (size_t at = 0; at < log.size(); at += 1009) {
    const LogScan scan = ScanLog(Flipped(log, at));
    EXPECT_EQ(scan.records + 1 + scan.records_behind, records) << "byte " << at;
  }
}

TEST_F(RecoveryTest, ScanOfEveryTruncationKeepsTheWholeRecords) {
  Commit(1, 6);
  const std::string log = ReadFile(Log());
  for (size_t size = 0; size < log.size(); ++size) {
    const LogScan scan = ScanLog(std::string_view(log).substr(0, size));
    EXPECT_EQ(scan.records_behind, 0U);
    EXPECT_LE(scan.damaged_at.value_or(size), size);
  }
}

// Whoever is killed in the middle of it must not be refused at the next start.
TEST_F(RecoveryTest, P9WhatAClientMakesLookLikeARecordIsNoneWhereAWriteOfManyBlocksIsTorn) {
  Commit(1, 3);
  std::string payload;
  while (payload.size() < 100'000) {
    payload += Record("no batch at all");
  }
  const uint64_t begin = ReadFile(Log()).size();
  {
    const auto store = Open();
    Batch batch;
    batch.Put(Table::kBig, IndexKey(JobId{4}), payload);
    ASSERT_TRUE((*store)->Commit(batch).ok());
  }
  const std::string whole = ReadFile(Log());
  ASSERT_GT(whole.size(), 100'000U);
  constexpr uint64_t kLastPiece = 32'768;
  for (uint64_t size = 1; size + kLastPiece < whole.size(); size += 1009) {
    for (const size_t zeroes : {0U, 70'000U}) {
      const LogScan scan = ScanLog(whole.substr(0, size) + std::string(zeroes, '\0'));
      ASSERT_EQ(scan.records_behind, 0U) << size << " of " << whole.size() << ", " << begin;
    }
  }
  WriteFile(Log(), whole.substr(0, 50'000));
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_THAT(Jobs(**store), ElementsAre(1, 2, 3));
}

TEST_F(RecoveryTest, ScanTakesZeroesBehindTheEndForSpaceAllocatedAhead) {
  Commit(1, 3);
  const std::string log = ReadFile(Log());
  for (const size_t zeroes : {1U, 6U, 7U, 70'000U}) {
    EXPECT_FALSE(ScanLog(log + std::string(zeroes, '\0')).damaged_at.has_value()) << zeroes;
  }
}

TEST_F(RecoveryTest, TornTailIsCutCopiedAndReported) {
  Commit(1, 5);
  const std::string file = Log();
  const std::string whole = ReadFile(file);
  WriteFile(file, whole.substr(0, whole.size() - 3));
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_THAT(Jobs(**store), ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(report_.cuts.size(), 1U);
  EXPECT_EQ(report_.cuts[0].batches_lost, 0U);
  EXPECT_EQ(report_.batch_number, 4U);
  const uint64_t offset = report_.cuts[0].offset;
  EXPECT_EQ(ReadFile(path() + "/" + report_.cuts[0].copy),
            whole.substr(offset, whole.size() - 3 - offset))
      << "what was cut off, and not the log before it, which is replayed";
  ASSERT_EQ(report_.Lines().size(), 1U);
  EXPECT_THAT(report_.Lines()[0], AllOf(HasSubstr(".log: cut"), HasSubstr("they are in damaged/")));
}

// A start cuts it off; who looks is not told to restore a backup.
TEST_F(RecoveryTest, ALookPassesOverATornWriteToTheManifest) {
  Commit(1, 3);
  ASSERT_TRUE(Open().ok());
  const std::string manifest = Manifest();
  const std::string torn =
      ReadFile(manifest) + std::string("\x11\x22\x33\x44\x30\0\x01", 7) + std::string(0x30, '\0');
  WriteFile(manifest, torn);
  for (const bool accept_loss : {false, true}) {
    RecoveryReport report;
    const auto look = OpenRocksJobReader(
        {.path = path(), .env = env_.get(), .accept_loss = accept_loss}, &report);
    ASSERT_TRUE(look.ok()) << look.status().message();
    EXPECT_EQ(report.batch_number, 3U);
    EXPECT_EQ(report.cuts.size(), 1U);
  }
  EXPECT_EQ(ReadFile(manifest), torn);
  EXPECT_TRUE(Open().ok());
}

TEST_F(RecoveryTest, P9ALookFindsAManifestThatWasCutBetweenItsRecords) {
  { ASSERT_TRUE(Open().ok()); }
  const std::string manifest = Manifest();
  const std::string whole = ReadFile(manifest);
  WriteFile(manifest, whole.substr(0, *ScanLog(Flipped(whole, whole.size() - 1)).damaged_at));
  const Status start = Open().status();
  const Status look = OpenRocksJobReader({.path = path(), .env = env_.get()}).status();
  EXPECT_EQ(start.reason(), "damaged_store");
  EXPECT_EQ(look.reason(), "damaged_store") << look.message();
}

// Tables are flushed one by one, so one may know more than what is left of the logs.
TEST_F(RecoveryTest, P9ALookSaysOfEachJobWhatTheLossWillMeanThoughATableWasFlushedAhead) {
  { ASSERT_TRUE(Open().ok()); }
  {
    rocksdb::DBOptions options;
    options.env = env_.get();
    options.avoid_flush_during_recovery = true;
    options.avoid_flush_during_shutdown = true;
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, path(), test::PlainTables(), &families, &db).ok());
    const auto put = [&](Table table, const std::string& key, const std::string& value) {
      ASSERT_TRUE(db->Put({}, families[static_cast<size_t>(table)], key, value).ok());
    };
    for (uint64_t id = 1; id <= 9; ++id) {
      const std::string index = IndexKey(JobId{id});
      put(Table::kIndex, index, EncodeIndexRecord(index, {.at = WallFromMillis(1)}));
      put(Table::kTimers, Key(id), "a job");
    }
    put(Table::kTimers, Key(1), "job 1, changed");
    put(Table::kBig, IndexKey(JobId{9}), "a payload");
    ASSERT_TRUE(db->Flush({}, families[static_cast<size_t>(Table::kBig)]).ok());
    put(Table::kTimers, Key(2), "job 2, changed");
    for (auto* family : families) {
      ASSERT_TRUE(db->DestroyColumnFamilyHandle(family).ok());
    }
    delete db;
  }
  const std::string log = Log(1);
  WriteFile(log, Flipped(ReadFile(log), ReadFile(log).size() / 2));
  RecoveryReport look_report;
  const auto look =
      OpenRocksJobReader({.path = path(), .env = env_.get(), .accept_loss = true}, &look_report);
  ASSERT_TRUE(look.ok()) << look.status().message();
  const auto said = SortLostJobs(look_report, **look);
  ASSERT_TRUE(said.ok());
  EXPECT_FALSE(said->gone.empty());
  EXPECT_THAT(said->older, ElementsAre(JobId{1}, JobId{2}));
}

TEST_F(RecoveryTest, GarbageBehindTheEndIsCut) {
  Commit(1, 5);
  WriteFile(Log(), ReadFile(Log()) + "garbage that no power cut explains");
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_THAT(Jobs(**store), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(report_.cuts.size(), 1U);
}

TEST_F(RecoveryTest, WholeStoreReportsNothing) {
  Commit(1, 5);
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(report_.Lines().empty());
}

TEST_F(RecoveryTest, P9DamageToAcknowledgedBatchesIsRefusedWithFileAndOffset) {
  Commit(1, 30);
  const std::string file = Log();
  const std::string whole = ReadFile(file);
  const uint64_t last_start = *ScanLog(Flipped(whole, whole.size() - 1)).damaged_at;
  for (size_t at = 0; at < last_start; at += 97) {
    WriteFile(file, Flipped(whole, at));
    const uint64_t damaged_at = *ScanLog(ReadFile(file)).damaged_at;
    const auto store = Open();
    ASSERT_FALSE(store.ok()) << "byte " << at;
    EXPECT_EQ(store.status().code(), StatusCode::kDataLoss);
    EXPECT_EQ(store.status().reason(), "damaged_store");
    EXPECT_THAT(store.status().message(),
                AllOf(HasSubstr(fs::path(file).filename().string()),
                      HasSubstr("byte " + std::to_string(damaged_at)),
                      HasSubstr("--accept-loss")));
    EXPECT_EQ(ReadFile(file), Flipped(whole, at)) << "a refusal changes nothing";
  }
  WriteFile(file, whole);
  EXPECT_TRUE(Open().ok()) << "the store is as good as it was";
}

// RocksDB alone takes this for an unfinished write and drops what stands behind.
TEST_F(RecoveryTest, P9DamagedLengthFieldDoesNotHideWhatStandsBehind) {
  Commit(1, 30);
  const std::string file = Log();
  std::string log = ReadFile(file);
  const uint64_t start = *ScanLog(Flipped(log, log.size() / 2)).damaged_at;
  log[start + 5] = '\x7f';
  WriteFile(file, log);
  EXPECT_EQ(Open().status().reason(), "damaged_store");
}

TEST_F(RecoveryTest, AcceptedLossIsCountedNamedAndKeptAside) {
  Commit(1, 30);
  const std::string file = Log();
  const std::string whole = ReadFile(file);
  const std::string damaged = Flipped(whole, whole.size() / 2);
  const uint64_t behind = ScanLog(damaged).records_behind;
  WriteFile(file, damaged);
  {
    const auto store = Open(true);
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_EQ(Jobs(**store).size(), 29 - behind);
  }
  EXPECT_EQ(report_.lost_batches, behind);
  ASSERT_EQ(report_.lost_jobs.size(), behind);
  EXPECT_EQ(*report_.lost_jobs.rbegin(), JobId{30});
  EXPECT_EQ(ReadFile(path() + "/" + report_.cuts.at(0).copy), damaged);
  EXPECT_THAT(report_.Lines(), ::testing::Contains(HasSubstr("the file as it was is damaged/")));
  EXPECT_THAT(report_.Lines(), ::testing::Contains(HasSubstr("lost by the operator's word")));
  ASSERT_TRUE(EndRecovery(path()).ok());
  EXPECT_TRUE(Open().ok()) << "the next start is an ordinary one";
}

TEST_F(RecoveryTest, P9DamageInAnOlderLogIsRefused) {
  Commit(1, 100, 1000);
  const std::string file = SplitLog();
  const std::string log = ReadFile(file);
  WriteFile(file, Flipped(log, log.size() - 1));
  const auto store = Open();
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.status().message(), HasSubstr(fs::path(file).filename().string()));
}

// It stays behind when its removal was cut short, half removed or damaged.
TEST_F(RecoveryTest, P9ALogThatNothingNeedsIsNotJudgedAndCostsNoOther) {
  Commit(1, 30);
  const std::string whole = ReadFile(Log());
  { ASSERT_TRUE(Open().value()->Close().ok()); }  // all of it is flushed
  Commit(31, 35);
  const std::string left_over = path() + "/000001.log";
  for (const std::string& log : {Flipped(whole, whole.size() / 2), whole.substr(0, 100)}) {
    for (const bool accept_loss : {false, true}) {
      WriteFile(left_over, log);
      const auto store = Open(accept_loss);
      ASSERT_TRUE(store.ok()) << store.status().message();
      EXPECT_GT(report_.oldest_log_needed, 1U);
      EXPECT_TRUE(report_.cuts.empty());
      EXPECT_EQ(report_.lost_batches, 0U);
      EXPECT_EQ(Jobs(**store).size(), 35U);
      EXPECT_TRUE(EndRecovery(path()).ok());
    }
  }
  EXPECT_FALSE(fs::exists(path() + "/damaged"));
}

TEST_F(RecoveryTest, P9NewestLogCutAtARecordBoundaryIsNoticed) {
  Commit(1, 2 * kBatchFloorStep);
  const std::string log = ReadFile(Log());
  const uint64_t boundary = *ScanLog(Flipped(log, log.size() / 3)).damaged_at;
  WriteFile(Log(), log.substr(0, boundary));
  const Status refused = Open().status();
  EXPECT_EQ(refused.reason(), "damaged_store");
  EXPECT_THAT(refused.message(), HasSubstr("newest log"));
  EXPECT_TRUE(Open(true).ok());
  EXPECT_THAT(refused.message(),
              HasSubstr("ends at batch " + std::to_string(report_.batch_number) + ","));
  ASSERT_TRUE(EndRecovery(path()).ok());
  EXPECT_TRUE(Open().ok()) << "an accepted loss is not reported again";
}

TEST_F(RecoveryTest, P9DeletedNewestLogIsNoticed) {
  Commit(1, 2 * kBatchFloorStep);
  fs::remove(Log());
  EXPECT_EQ(Open().status().reason(), "damaged_store");
}

// As by a cron job that cleans up *.log, or truncates them.
TEST_F(RecoveryTest, P9ANewestLogThatIsGoneOrEmptyIsNoticedFromItsFirstBatchOn) {
  for (const uint64_t batches : {1U, 2U, 7U, 30U}) {
    for (const bool removed : {true, false}) {
      fs::remove_all(path());
      Commit(1, batches);
      if (removed) {
        fs::remove(Log());
      } else {
        fs::resize_file(Log(), 0);
      }
      EXPECT_EQ(Open().status().reason(), "damaged_store") << batches << removed;
    }
  }
}

// A start that is refused leaves it its place.
TEST_F(RecoveryTest, P9ANewestLogThatWasCutOrIsGoneMayBePutBack) {
  for (const double part : {0.9, 0.5, 0.1}) {
    fs::remove_all(path());
    Commit(1, 2 * kBatchFloorStep);
    const std::string log = Log();
    const std::string whole = ReadFile(log);
    const auto at = static_cast<size_t>(part * static_cast<double>(whole.size()));
    WriteFile(log, whole.substr(0, *ScanLog(Flipped(whole, at)).damaged_at));
    EXPECT_EQ(Open().status().reason(), "damaged_store");
    fs::remove(log);
    EXPECT_EQ(Open().status().reason(), "damaged_store");
    WriteFile(log, whole);
    const auto store = Open();
    ASSERT_TRUE(store.ok()) << part << ": " << store.status().message();
    EXPECT_EQ(Jobs(**store).size(), 2 * kBatchFloorStep) << part;
  }
}

// RocksDB's own start ends by an assertion there.
TEST_F(RecoveryTest, P9ACopyOfALogUnderAnotherNameIsNamed) {
  Commit(1, 5);
  fs::copy_file(Log(), newer_log());
  const Status status = Open().status();
  EXPECT_EQ(status.reason(), "damaged_store");
  EXPECT_THAT(status.message(), AllOf(HasSubstr("900000.log goes on"), HasSubstr("move it away")));
  fs::remove(newer_log());
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << "the advice holds: " << store.status().message();
  EXPECT_EQ(Jobs(**store).size(), 5U);
}

// Its newest log lies there on, and would be replayed into tables that are older.
TEST_F(RecoveryTest, P9ABackupThatIsCopiedOverTheStoreIsNoticed) {
  Commit(1, 5);
  ASSERT_TRUE(Open().value()->Close().ok());
  fs::copy(path(), dir_.Sub("backup"), fs::copy_options::recursive);
  Commit(6, 9);
  ASSERT_TRUE(Open().value()->Close().ok());
  Commit(10, 12);
  fs::copy(dir_.Sub("backup"),
           path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const std::string log = fs::path(Log()).filename().string();
  const Status status = Open().status();
  EXPECT_EQ(status.reason(), "damaged_store");
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(log + " goes on"), HasSubstr("into an empty directory")));
  RecoveryReport look;
  EXPECT_EQ(RecoverLogs(path(), LogRepair::kLookOnly, &look).message(), status.message());
}

// As by `cp -a BACKUP DIR` where DIR could not be moved away: the store of before goes on.
TEST_F(RecoveryTest, ABackupThatWasCopiedIntoTheStoreIsNamed) {
  Commit(1, 3);
  ASSERT_TRUE(BackUpRocksJobStore(Open()->get(), dir_.Sub("backup")).ok());
  EXPECT_THAT(report_.Lines(), Not(Contains(HasSubstr("lies in the data directory"))));
  fs::copy(dir_.Sub("backup"), path() + "/backup", fs::copy_options::recursive);
  fs::create_directory(path() + "/damaged");
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(report_.Lines(),
              ElementsAre(HasSubstr(path() + "/backup, which is a store or a backup itself, lies "
                                             "in the data directory")));
}

// As of a backup that root has copied there.
TEST_F(RecoveryTest, WhatCannotBeLookedIntoIsNamed) {
  Commit(1, 3);
  for (const char* name : {"/backup", "/lost+found"}) {
    fs::create_symlink(path() + name, path() + name);  // a loop stands in for a mode: root may all
  }
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(report_.Lines(),
              ElementsAre(HasSubstr(path() + "/backup, which cannot be looked into (")));
}

TEST_F(RecoveryTest, P9AMissingOrDamagedFloorIsTold) {
  Commit(1, 3);
  const std::string floor = ReadFile(path() + "/BATCH");
  for (const std::string& content : {std::string(),
                                     Flipped(floor, 20),
                                     floor.substr(0, 10),
                                     std::string("batch 00000000000000000009 crc 00000000\n")}) {
    WriteFile(path() + "/BATCH", content);
    EXPECT_TRUE(Open().ok());
    EXPECT_THAT(report_.Lines(), ElementsAre(HasSubstr("BATCH is missing or damaged")));
    EXPECT_TRUE(Open().ok());
    EXPECT_THAT(report_.Lines(), ElementsAre()) << "it is written anew";
  }
  fs::remove(path() + "/BATCH");
  EXPECT_TRUE(Open().ok());
  EXPECT_THAT(report_.Lines(), ElementsAre(HasSubstr("BATCH is missing or damaged")));
}

TEST_F(RecoveryTest, P9StoreOlderThanItsOrderlyEndIsNoticed) {
  Commit(1, 3);
  fs::copy(path(), dir_.Sub("older"), fs::copy_options::recursive);
  { ASSERT_TRUE(Open().value()->Close().ok()); }
  Commit(4, 6);
  { ASSERT_TRUE(Open().value()->Close().ok()); }
  const std::string floor = ReadFile(path() + "/BATCH");
  fs::remove_all(path());
  fs::copy(dir_.Sub("older"), path(), fs::copy_options::recursive);
  WriteFile(path() + "/BATCH", floor);
  EXPECT_EQ(Open().status().reason(), "damaged_store");
}

TEST_F(RecoveryTest, P9AnOrderlyEndLeavesAnExactFloor) {
  auto store = Open().value();
  for (uint64_t number = 1; number <= 4; ++number) {
    Batch batch;
    batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
    ASSERT_TRUE(store->Commit(batch).ok());
  }
  EXPECT_EQ(BatchFloor(path()).Read(), 3U) << "it trails while the store runs";
  ASSERT_TRUE(store->Close().ok());
  EXPECT_EQ(BatchFloor(path()).Read(), 4U);
}

TEST_F(RecoveryTest, TornManifestTailIsCut) {
  Commit(1, 3);
  const std::string file = Manifest();
  WriteFile(file, ReadFile(file) + "torn");
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(report_.cuts.at(0).file, fs::path(file).filename().string());
}

// RocksDB begins a MANIFEST anew when it has grown; here after each record.
TEST_F(RecoveryTest, P1AManifestThatIsBegunAnewWhileTheStoreRunsLosesNothing) {
  constexpr uint64_t kBatches = 100;
  const RocksJobStoreOptions options{.path = path(),
                                     .env = env_.get(),
                                     .wal_bytes_max = 8192,
                                     .manifest_bytes_max = 1,
                                     .removal_step_bytes = 256};
  std::string first;
  {
    auto store = OpenRocksJobStore(options);
    ASSERT_TRUE(store.ok()) << store.status().message();
    first = Manifest();
    for (uint64_t number = 1; number <= kBatches; ++number) {
      Batch batch;
      batch.Put(Table::kTimers, Key(number), std::string(500, 'x'));
      batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
      ASSERT_TRUE((*store)->Commit(batch).ok());
    }
    ASSERT_TRUE(BackUpRocksJobStore(store->get(), dir_.Sub("backup")).ok());
  }
  EXPECT_NE(Manifest(), first);
  WriteFile(Manifest(), ReadFile(Manifest()) + "torn");
  for (const std::string& directory : {path(), dir_.Sub("backup")}) {
    RecoveryReport report;
    const auto store = OpenRocksJobStore({.path = directory, .env = env_.get()}, &report);
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_EQ(Jobs(**store).size(), kBatches);
    EXPECT_GT(report.oldest_log_needed, 0U) << "a new MANIFEST says it from its first records on";
    EXPECT_EQ(report.cuts.size(), directory == path() ? 1U : 0U);
  }
}

TEST_F(RecoveryTest, P9CurrentThatNamesNoManifestIsRefused) {
  Commit(1, 3);
  const std::string whole = ReadFile(path() + "/CURRENT");
  for (const std::string& text : {std::string(),
                                  whole.substr(0, whole.size() - 1),
                                  "x" + whole,
                                  whole + "x",
                                  std::string("MANIFEST-12x\n")}) {
    WriteFile(path() + "/CURRENT", text);
    const Status refused = Open().status();
    EXPECT_EQ(refused.reason(), "damaged_store") << text;
    EXPECT_THAT(refused.message(), HasSubstr("CURRENT names no MANIFEST")) << text;
  }
  WriteFile(path() + "/CURRENT", "MANIFEST-999999\n");
  EXPECT_EQ(Open().status().reason(), "damaged_store");
}

TEST_F(RecoveryTest, P9DamagedManifestIsRefused) {
  Commit(1, 3);
  const std::string file = Manifest();
  const std::string whole = ReadFile(file);
  for (size_t at = 0; at < whole.size() / 2; at += 13) {
    WriteFile(file, Flipped(whole, at));
    EXPECT_EQ(Open().status().reason(), "damaged_store") << at;
    EXPECT_EQ(ReadFile(file), Flipped(whole, at)) << "a refusal changes nothing";
  }
}

// Which is no damage to RocksDB: its own log may end anywhere.
TEST_F(RecoveryTest, P9ManifestThatEndsBeforeItsTimeIsRefusedAndNamed) {
  Commit(1, 3);
  const std::string current = ReadFile(path() + "/CURRENT");
  const std::string name = current.substr(0, current.size() - 1);
  const std::string whole = ReadFile(path() + "/" + name);
  const std::string kept = dir_.Sub("kept");
  fs::copy(path(), kept, fs::copy_options::recursive);
  constexpr size_t kHeaderBytes = 7;  // four of checksum, two of length, the type
  size_t records = 0;
  for (size_t at = 0; at < whole.size(); ++records) {
    fs::remove_all(path());
    fs::copy(kept, path(), fs::copy_options::recursive);
    WriteFile(path() + "/" + name, whole.substr(0, at));
    const auto store = Open();
    if (store.ok()) {
      EXPECT_EQ(Jobs(**store), (std::vector<uint64_t>{1, 2, 3})) << "cut at byte " << at;
    } else {
      EXPECT_EQ(store.status().code(), StatusCode::kDataLoss) << "cut at byte " << at;
      EXPECT_THAT(store.status().message(), HasSubstr("MANIFEST")) << "cut at byte " << at;
    }
    const auto length = static_cast<unsigned char>(whole.at(at + 4)) +
                        256U * static_cast<unsigned char>(whole.at(at + 5));
    at += kHeaderBytes + length;
  }
  EXPECT_GT(records, kTableCount);
}

TEST_F(RecoveryTest, P9FlippedByteInATableFileIsFoundWhenItIsRead) {
  Commit(1, 200, 500);
  { ASSERT_TRUE(Open().value()->Close().ok()); }
  std::string largest;
  for (const auto& entry : fs::directory_iterator(path())) {
    if (entry.path().extension() == ".sst" &&
        (largest.empty() || entry.file_size() > fs::file_size(largest))) {
      largest = entry.path().string();
    }
  }
  WriteFile(largest, Flipped(ReadFile(largest), 100));
  const auto store = Open();
  const Status status =
      store.ok() ? (*store)->Scan(Table::kTimers, Key(0), {}, [](auto, auto) { return true; })
                 : store.status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(".sst"));
}

}  // namespace
}  // namespace delayd::storage
