// Recovery when the disk does not play along, and the account it gives: nothing is cut that was not
// copied aside, and every refusal names what it is about.
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/batch_floor.h"
#include "storage/data_dir.h"
#include "tests/support/plain_tables.h"
#include "tests/unit/storage/recovery_fixture.h"

#include <sys/wait.h>

namespace delayd::storage {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class RecoveryErrorsTest : public RecoveryTest {
 protected:
  // The newest log loses its last bytes.
  std::string TearTail() {
    Commit(1, 5);
    const std::string whole = ReadFile(Log());
    WriteFile(Log(), whole.substr(0, whole.size() - 3));
    return Log();
  }
};

TEST_F(RecoveryErrorsTest, ADamagedNumberThatKeepsAStoreShutIsToldWithItsCure) {
  for (const std::string_view key : {kBatchNumberKey, kSchemaKey}) {
    fs::remove_all(path());
    Commit(1, 3);
    {
      std::vector<rocksdb::ColumnFamilyHandle*> families;
      rocksdb::DB* opened = nullptr;
      rocksdb::DBOptions options;
      options.env = env_.get();
      ASSERT_TRUE(rocksdb::DB::Open(options, path(), test::PlainTables(), &families, &opened).ok());
      const std::unique_ptr<rocksdb::DB> db(opened);
      const std::string damaged = Flipped(EncodeNumber(key, 1), 2);
      EXPECT_TRUE(db->Put(rocksdb::WriteOptions(), families.front(), key, damaged).ok());
      for (rocksdb::ColumnFamilyHandle* family : families) {
        EXPECT_TRUE(db->DestroyColumnFamilyHandle(family).ok());
      }
    }
    for (const bool accept_loss : {false, true}) {
      const Status status = Open(accept_loss).status();
      EXPECT_EQ(status.code(), StatusCode::kDataLoss) << key;
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr("is damaged: meta " + std::string(key)),
                        HasSubstr("; no recovery mends this, restore a backup")));
    }
  }
}

// Verify and recover send the user to a start, which tells whether there was a store.
TEST_F(RecoveryErrorsTest, AMissingFormatBesideADamagedLogIsAdvisedUponToTheEnd) {
  DamageMiddle();
  fs::remove(path() + "/FORMAT");
  const Status recover = DataDir::RequireStore(path());
  EXPECT_THAT(recover.message(), HasSubstr("start delayd on it"));
  const Status start = Open().status();
  EXPECT_EQ(start.reason(), "damaged_store");
  EXPECT_THAT(start.message(),
              HasSubstr("recover --accept-loss; its FORMAT file is missing too, and recover needs "
                        "it: write \"delayd-store schema 1\" into FORMAT first"));
  WriteFile(path() + "/FORMAT", "delayd-store schema 1\n");
  EXPECT_TRUE(DataDir::RequireStore(path()).ok());
  const auto store = Open(/*accept_loss=*/true);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_GT(Jobs(**store).size(), 0U);
}

TEST_F(RecoveryErrorsTest, P9WhatCannotBeCopiedAsideIsNotCut) {
  const std::string log = TearTail();
  const std::string torn = ReadFile(log);
  const uint64_t offset = *ScanLog(torn).damaged_at;
  const std::string copies = path() + "/damaged";
  WriteFile(copies, "a file where the directory should be");
  const auto file_in_the_way = Open();
  EXPECT_EQ(file_in_the_way.status().reason(), "storage_io");
  EXPECT_THAT(file_in_the_way.status().message(),
              AllOf(HasSubstr("nothing was changed"), HasSubstr("is no directory; move it away")));
  EXPECT_EQ(ReadFile(log), torn);
  fs::remove(copies);
  const std::string copy =
      copies + "/" + fs::path(log).filename().string() + "." + std::to_string(offset);
  fs::create_directories(copy);
  EXPECT_EQ(Open().status().reason(), "storage_io") << "a directory where the copy should be";
  EXPECT_EQ(ReadFile(log), torn);
  fs::remove(copy);
  EXPECT_TRUE(Open().ok());
}

TEST_F(RecoveryErrorsTest, ALookChangesNothingAndTellsOfATornTail) {
  const std::string log = TearTail();
  const std::string torn = ReadFile(log);
  RecoveryReport report;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kLookOnly, &report).ok());
  EXPECT_THAT(report.Lines(),
              ElementsAre(AllOf(HasSubstr(fs::path(log).filename().string() + ": would cut"),
                                HasSubstr("left as it is"))));
  EXPECT_EQ(ReadFile(log), torn);
  EXPECT_FALSE(fs::exists(path() + "/damaged"));
}

TEST_F(RecoveryErrorsTest, P9ALossIsShownBeforeItIsAccepted) {
  const std::string log = DamageMiddle();
  const std::string damaged = ReadFile(log);
  RecoveryReport look;
  EXPECT_EQ(RecoverLogs(path(), LogRepair::kLookOnly, &look).reason(), "damaged_store");
  RecoveryReport report;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kShowLoss, &report).ok());
  EXPECT_GT(report.lost_batches, 0U);
  EXPECT_EQ(report.lost_jobs.size(), report.lost_batches);
  EXPECT_THAT(report.Lines(), Contains(HasSubstr("would be lost: ")));
  EXPECT_THAT(report.Lines(), Not(Contains(HasSubstr("or more"))));
  EXPECT_EQ(ReadFile(log), damaged);
}

TEST_F(RecoveryErrorsTest, AcceptedLossTakesTheNewerLogsAndReportsThemInOrder) {
  Commit(1, 20);
  const std::string log = SplitLog();
  const std::string older = ReadFile(log);
  const std::string newer = ReadFile(newer_log());
  WriteFile(path() + "/900001.log", "");
  WriteFile(log, Flipped(older, older.size() - 1));
  RecoveryReport report;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kAcceptLoss, &report).ok());
  ASSERT_EQ(report.cuts.size(), 2U) << "of the empty log there is nothing to cut";
  EXPECT_EQ(report.cuts[0].file, fs::path(log).filename().string());
  EXPECT_EQ(report.cuts[1].file, "900000.log");
  EXPECT_EQ(report.cuts[1].offset, 0U);
  EXPECT_EQ(fs::file_size(newer_log()), 0U);
  EXPECT_EQ(report.lost_batches, ScanLog(newer).records);
  EXPECT_EQ(report.cuts[0].batches_lost, 0U);
  EXPECT_THAT(report.Lines(), Contains(HasSubstr("in which no batch is whole")));
  EXPECT_THAT(report.Lines(), Not(Contains(HasSubstr("unanswered")))) << "what follows was written";
}

// Where no more files can be opened for a moment.
class ShyCurrent final : public rocksdb::FileSystemWrapper {
 public:
  ShyCurrent(int times, std::string error)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        times_(times),
        error_(std::move(error)) {}

  const char* Name() const override { return "ShyCurrent"; }

  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override {
    return path.ends_with("/CURRENT") && times_-- > 0
               ? rocksdb::IOStatus::IOError("While open a file for random read: " + path, error_)
               : target()->NewRandomAccessFile(path, options, result, debug);
  }

 private:
  int times_;
  const std::string error_;
};

TEST_F(RecoveryErrorsTest, AnErrorThatPassesIsNoDamage) {
  Commit(1, 3);
  const auto open = [this](int times, const std::string& error) {
    const auto env = rocksdb::NewCompositeEnv(std::make_shared<ShyCurrent>(times, error));
    return OpenRocksJobStore({.path = path(), .env = env.get()}).status();
  };
  const Status passed = open(1, "Too many open files in system");
  EXPECT_EQ(passed.reason(), "storage_io") << passed.message();
  EXPECT_THAT(passed.message(), Not(HasSubstr("Direct I/O")));
  const Status files = open(2, "Too many open files in system");
  EXPECT_EQ(files.reason(), "storage_io");
  EXPECT_THAT(files.message(),
              AllOf(HasSubstr("CURRENT: Too many open files in system; raise the limit of open"),
                    Not(HasSubstr("incompatible"))));
  EXPECT_EQ(open(2, "Permission denied").code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(open(2, "No space left on device").reason(), "disk_full");
  EXPECT_TRUE(open(0, "").ok());
}

TEST_F(RecoveryErrorsTest, AFileWithMoreDigitsThanALogCanHaveIsNoLog) {
  Commit(1, 3);
  WriteFile(path() + "/99999999999999999999.log", "somebody's own");
  RecoveryReport report;
  EXPECT_TRUE(RecoverLogs(path(), LogRepair::kTornTails, &report).ok());
  EXPECT_TRUE(report.cuts.empty());
  EXPECT_TRUE(Open().ok());
}

TEST_F(RecoveryErrorsTest, WhatCannotBeReadIsNamed) {
  RecoveryReport report;
  const Status missing = RecoverLogs(path() + "/none", LogRepair::kTornTails, &report);
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr(path() + "/none"));
  EXPECT_THAT(ScanLogFile(path() + "/none.log").status().message(), HasSubstr("none.log"));

  Commit(1, 3);
  for (const std::string& name : {std::string("900000.log"), std::string("CURRENT")}) {
    const std::string file = path() + "/" + name;
    const std::string kept = fs::exists(file) ? ReadFile(file) : "";
    fs::remove(file);
    fs::create_directory(file);
    const Status status = RecoverLogs(path(), LogRepair::kTornTails, &report);
    EXPECT_THAT(status.message(), HasSubstr(name));
    fs::remove(file);
    if (!kept.empty()) {
      WriteFile(file, kept);
    }
  }
  fs::remove(Manifest());
  fs::create_directory(Manifest());
  EXPECT_THAT(RecoverLogs(path(), LogRepair::kTornTails, &report).message(),
              HasSubstr("MANIFEST-"));
}

TEST_F(RecoveryErrorsTest, TheOldestLogNeededIsReadFromTheManifest) {
  fs::create_directory(path());
  WriteFile(path() + "/CURRENT", "MANIFEST-000001\n");
  const auto needed = [this](const std::vector<std::string>& edits) {
    std::string manifest;
    for (const std::string& edit : edits) {
      manifest += Record(edit);
    }
    WriteFile(path() + "/MANIFEST-000001", manifest);
    RecoveryReport report;
    EXPECT_TRUE(RecoverLogs(path(), LogRepair::kLookOnly, &report).ok());
    return report.oldest_log_needed;
  };
  const std::string comparator(
      "\x01\x03"
      "abc",
      5);
  const std::string numbers("\x02\x09\x03\x0c\x09\x01\xcb\x01\x07", 9);  // 203 takes two bytes
  EXPECT_EQ(needed({comparator}), 0U);
  EXPECT_EQ(needed({comparator + numbers + "\x0a\x05"}), 5U);
  EXPECT_EQ(needed({"\x0a\x05", "\x0a\x11", "\x0a\x06"}), 17U) << "the highest counts";
  EXPECT_EQ(needed({"\x64\x0a\x05"}), 0U) << "what follows a field of no interest is not read";
  EXPECT_EQ(needed({"\x04\x07\x0a\x05"}), 5U);
  EXPECT_EQ(needed({"\x0a\x85"}), 0U) << "cut within a number";
}

// RocksDB leaves such a note after a failed write to a MANIFEST: what deletes it stands in the one
// before.
TEST_F(RecoveryErrorsTest, ANoteOfALogThatNothingNeedsIsNoDamage) {
  Commit(1, 5);
  { ASSERT_TRUE(Open().ok()); }                        // flushes, and begins a MANIFEST
  const std::string kDeletesNotes("\x88\x40\x01", 3);  // and the number below which they go
  const std::string kNoteOfLog2("\x87\x40\x05\x02\x02\xc0\x43\x01", 8);
  std::string manifest;
  const auto copy = [&](std::string_view edit) {
    manifest += Record(std::string(edit.substr(0, edit.find(kDeletesNotes))));
  };
  ASSERT_TRUE(ScanLogFile(Manifest(), {.visit_whole = copy}).ok());
  WriteFile(Manifest(), manifest + Record(kNoteOfLog2));
  const RocksJobStoreOptions options{.path = path(), .env = env_.get()};
  const Status look = OpenRocksJobReader(options).status();
  EXPECT_EQ(look.reason(), "stale_log_note");
  EXPECT_THAT(look.message(), AllOf(HasSubstr("nothing is lost"), HasSubstr("start the daemon")));
  {
    const auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_THAT(Jobs(**store), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_EQ(report_.stale_log_note, 2U);
  }
  EXPECT_TRUE(OpenRocksJobReader(options).ok()) << "the note is erased";
}

TEST_F(RecoveryErrorsTest, ReportsOfManyLostJobsAndOfStaleNotes) {
  RecoveryReport report;
  report.given_up = true;
  report.cuts.push_back({.file = "7.log", .offset = 1, .bytes = 2, .batches_lost = 3, .copy = "c"});
  report.lost_batches = 3;
  for (uint64_t id = 1; id <= kLostJobsMax; ++id) {
    report.lost_jobs.insert(JobId{id});
  }
  report.stale_log_note = 6;
  report.batch_number = 4;
  report.batch_number_floor = 9;
  EXPECT_THAT(report.Lines(),
              ElementsAre(AllOf(HasSubstr("7.log: cut 2 bytes"), HasSubstr("3 acknowledged")),
                          AllOf(HasSubstr("lost by the operator's word"),
                                HasSubstr("or more"),
                                HasSubstr("at least one batch that cannot be read")),
                          HasSubstr("noted log 6"),
                          HasSubstr("reached batch 9 at least and is at batch 4")));
}

// What is left of a store: jobs 1, waiting, and 2, dead; the index rows of 5, which had finished
// before, and of 6 and 7, whose records are lost.
class RowsLeft final : public JobReader {
 public:
  Status Get(Table table, std::string_view key, std::string* value) const override {
    if (broken) {
      return Unavailable("the disk is gone");
    }
    if (table != Table::kIndex) {
      const bool is_there = (table == Table::kTimers && key == TimerKey({}, JobId{1})) ||
                            (table == Table::kDead && key == DeadKey({}, {}, JobId{2}));
      return is_there ? OkStatus() : NotFound("no row");
    }
    const std::map<JobId, IndexRecord::Place> rows = {{JobId{1}, IndexRecord::Place::kTimers},
                                                      {JobId{2}, IndexRecord::Place::kDead},
                                                      {JobId{5}, IndexRecord::Place::kDone},
                                                      {JobId{6}, IndexRecord::Place::kTimers},
                                                      {JobId{7}, IndexRecord::Place::kDead}};
    const auto row = rows.find(*ParseIndexKey(key));
    if (row == rows.end()) {
      return NotFound("no row");
    }
    *value = EncodeIndexRecord(key, {.place = row->second});
    value->resize(value->size() - (damaged ? 1 : 0));
    return OkStatus();
  }

  Status Scan(Table /*table*/,
              std::string_view /*from*/,
              std::string_view /*to*/,
              const Visitor& /*visit*/) const override {
    return Unavailable("nothing is scanned here");
  }

  bool broken = false;
  bool damaged = false;
};

TEST(LossByJobTest, P9EachJobOfALossIsToldWhatBecameOfIt) {
  RowsLeft store;
  RecoveryReport report;
  report.lost_jobs = {JobId{4}, JobId{3}, JobId{1}, JobId{2}, JobId{6}};
  report.ended_jobs = {JobId{4}, JobId{2}, JobId{5}, JobId{7}};
  const auto loss = SortLostJobs(report, store);
  ASSERT_TRUE(loss.ok());
  EXPECT_THAT(loss->older, ElementsAre(JobId{1}));
  EXPECT_THAT(loss->revived, ElementsAre(JobId{2})) << "5 was forgotten in what was lost";
  EXPECT_THAT(loss->gone, ElementsAre(JobId{3}, JobId{6}))
      << "4 came and ended in what was lost; an index row alone is no job";
  EXPECT_EQ(loss->unread, 0U);
  store.damaged = true;
  const auto part = SortLostJobs(report, store);
  ASSERT_TRUE(part.ok());
  EXPECT_THAT(part->gone, ElementsAre(JobId{3}));
  EXPECT_TRUE(part->older.empty() && part->revived.empty());
  EXPECT_EQ(part->unread, 5U) << "1, 2, 5, 6 and 7, whose rows are there and damaged";
  store.broken = true;
  EXPECT_EQ(SortLostJobs(report, store).status().code(), StatusCode::kUnavailable);
  report.ended_jobs.clear();
  EXPECT_EQ(SortLostJobs(report, store).status().code(), StatusCode::kUnavailable);
}

TEST_F(RecoveryErrorsTest, AFloorThatCannotBeWrittenStaysWhereItWas) {
  BatchFloor nowhere(path() + "/none");
  EXPECT_THAT(nowhere.Set(7).message(), HasSubstr("cannot open"));
  nowhere.Raise(kBatchFloorStep);  // must not end the store
  EXPECT_EQ(nowhere.Read(), std::nullopt);
  fs::create_directory(path());
  fs::create_directory(path() + "/BATCH");
  EXPECT_EQ(BatchFloor(path()).Read(), std::nullopt) << "what cannot be read is no floor";
  fs::remove(path() + "/BATCH");
  fs::create_symlink("/dev/full", path() + "/BATCH");
  EXPECT_THAT(BatchFloor(path()).Set(7).message(), HasSubstr("cannot write"));
  fs::remove(path() + "/BATCH");
  fs::create_symlink("/dev/null", path() + "/BATCH");
  EXPECT_THAT(BatchFloor(path()).Set(7).message(), HasSubstr("cannot fsync"));
}

// Jobs that the lost batches wrote, kept something of, and ended; with more of them than are named.
TEST_F(RecoveryErrorsTest, P9TheJobsOfALossAreNamedByWhatBecameOfThem) {
  {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status().message();
    Batch batch;
    batch.Put(Table::kTimers, Key(1), "the record that is damaged");
    ASSERT_TRUE((*store)->Commit(batch).ok());
    batch = Batch();
    batch.Put(Table::kTimers, Key(7), "new");
    batch.Put(Table::kDone, DoneKey(WallFromMillis(1), JobId{8}), "kept");
    batch.Put(Table::kDead, DeadKey(QueueId{1}, WallFromMillis(1), JobId{6}), "buried");
    batch.Delete(Table::kIndex, IndexKey(JobId{9}));
    batch.Delete(Table::kByQueue, ByQueueKey(QueueId{1}, WallFromMillis(1), JobId{9}));
    // Keys of no length that these tables have.
    batch.Put(Table::kTimers, "odd", "");
    batch.Put(Table::kDone, "odd", "");
    batch.Put(Table::kDead, "odd", "");
    batch.Delete(Table::kIndex, "odd");
    batch.Put(Table::kMeta, kIdHighWaterMarkKey, "odd");
    ASSERT_TRUE((*store)->Commit(batch).ok());
    // Each job counts once, however often it was written.
    for (int again = 0; again < 3; ++again) {
      ASSERT_TRUE((*store)->Commit(batch).ok());
    }
    for (uint64_t many = 0; many < kLostJobsMax; ++many) {
      batch.Put(Table::kTimers, Key(100 + many), "");
      batch.Put(Table::kDone, DoneKey(WallFromMillis(1), JobId{100 + many}), "");
      batch.Put(Table::kDead, DeadKey(QueueId{1}, WallFromMillis(1), JobId{100 + many}), "");
      batch.Delete(Table::kIndex, IndexKey(JobId{100 + many}));
    }
    ASSERT_TRUE((*store)->Commit(batch).ok());
  }
  const std::string whole = ReadFile(Log());
  WriteFile(Log(), Flipped(whole, whole.find("the record that is damaged")));
  RecoveryReport report;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kShowLoss, &report).ok());
  EXPECT_THAT(report.lost_jobs, AllOf(Contains(JobId{7}), Contains(JobId{6})));
  EXPECT_THAT(report.ended_jobs, AllOf(Contains(JobId{8}), Contains(JobId{9})));
  EXPECT_THAT(report.lost_jobs, Contains(JobId{100 + kLostJobsMax - 3}));
  EXPECT_THAT(report.ended_jobs, Contains(JobId{100 + kLostJobsMax - 3}));
  EXPECT_EQ(report.lost_jobs.size(), kLostJobsMax);
  EXPECT_EQ(report.ended_jobs.size(), kLostJobsMax);
  EXPECT_EQ(report.lost_ids_end, 100 + kLostJobsMax) << "of all, not of the named ones";
}

TEST_F(RecoveryErrorsTest, IdsThatALostBatchReservedAreKnown) {
  {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status().message();
    for (const char* payload : {"the record that is damaged", "new"}) {
      Batch batch;
      batch.Put(Table::kTimers, Key(7), payload);
      batch.Put(Table::kMeta, kIdHighWaterMarkKey, EncodeNumber(kIdHighWaterMarkKey, 1'000'001));
      ASSERT_TRUE((*store)->Commit(batch).ok());
    }
  }
  const std::string whole = ReadFile(Log());
  WriteFile(Log(), Flipped(whole, whole.find("the record that is damaged")));
  RecoveryReport report;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kShowLoss, &report).ok());
  EXPECT_EQ(report.lost_ids_end, 1'000'001U);
}

TEST_F(RecoveryErrorsTest, FilesThatAreNoLogsAreLeftAlone) {
  Commit(1, 3);
  for (const char* name : {"123", ".log", "12.sst", "notes.log"}) {
    WriteFile(path() + "/" + name, "no log at all");
  }
  RecoveryReport report;
  EXPECT_TRUE(RecoverLogs(path(), LogRepair::kLookOnly, &report).ok());
  EXPECT_TRUE(report.cuts.empty());
}

// What the refusal says, to the letter.
TEST_F(RecoveryErrorsTest, P9ALostCurrentIsNamedWithTheLineThatBelongsIntoIt) {
  Commit(1, 3);
  const std::string line = ReadFile(path() + "/CURRENT");
  const std::string manifest = line.substr(0, line.size() - 1);
  for (const bool removed : {true, false}) {
    fs::remove(path() + "/CURRENT");
    if (!removed) {
      WriteFile(path() + "/CURRENT", "");
    }
    for (const bool accept_loss : {false, true}) {
      const Status refused = Open(accept_loss).status();
      EXPECT_EQ(refused.reason(), "damaged_store");
      EXPECT_THAT(refused.message(),
                  HasSubstr("/CURRENT " + std::string(removed ? "is missing" : "names no")));
      EXPECT_THAT(refused.message(), HasSubstr("write the line \"" + manifest + "\" into it"));
    }
    fs::copy_file(path() + "/" + manifest, path() + "/MANIFEST-900000");
    EXPECT_THAT(Open().status().message(), EndsWith("; restore a backup"));
    fs::remove(path() + "/MANIFEST-900000");
  }
  WriteFile(path() + "/CURRENT", manifest + "\n");
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(Jobs(**store).size(), 3U);
}

// A block's last bytes are too few for a header; only zeroes are left there.
TEST_F(RecoveryErrorsTest, BytesInABlocksTrailerAreDamage) {
  constexpr size_t kBlock = 32768;
  constexpr size_t kHeader = 7;
  std::string log;
  for (const size_t left : {size_t{20'000}, kBlock - 20'000 - 3}) {
    log += Record(std::string(left - kHeader, 'r'));
  }
  ASSERT_EQ(log.size(), kBlock - 3);
  const std::string next = Record("the next block's");
  const LogScan good = ScanLog(log + std::string(3, '\0') + next);
  EXPECT_FALSE(good.damaged_at.has_value());
  EXPECT_EQ(good.records, 3U);
  const LogScan bad = ScanLog(log + "odd" + next);
  EXPECT_EQ(bad.damaged_at, kBlock - 3);
  EXPECT_EQ(bad.records_behind, 1U);
}

TEST_F(RecoveryErrorsTest, ARecordWhoseEndIsMissingIsDamage) {
  Commit(1, 3);
  Commit(4, 4, 100'000);  // over several blocks
  const std::string whole = ReadFile(Log());
  const size_t block = 32768;
  ASSERT_GT(whole.size(), 2 * block);
  const LogScan scan = ScanLog(whole.substr(0, 2 * block));
  ASSERT_TRUE(scan.damaged_at.has_value());
  EXPECT_LT(*scan.damaged_at, block);
  EXPECT_EQ(scan.records_behind, 0U);
}

// A file that a program runs from cannot be cut, whoever asks.
TEST_F(RecoveryErrorsTest, P9ALogThatCannotBeCutIsNamedAndItsCopyStays) {
  Commit(1, 3);
  const std::string log = newer_log();
  fs::copy_file("/bin/sh", log);
  int input[2];
  ASSERT_EQ(::pipe2(input, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], 0);
  char name[] = "sh";
  char* arguments[] = {name, nullptr};
  pid_t runs = 0;
  const int spawned = ::posix_spawn(&runs, log.c_str(), &actions, nullptr, arguments, nullptr);
  posix_spawn_file_actions_destroy(&actions);
  ::close(input[0]);
  if (spawned == 0) {
    RecoveryReport report;
    const Status status = RecoverLogs(path(), LogRepair::kTornTails, &report);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("cannot cut"), HasSubstr("900000.log")));
    EXPECT_TRUE(report.cuts.empty());
    EXPECT_EQ(ReadFile(path() + "/damaged/900000.log.0"), ReadFile(log));
  }
  ::close(input[1]);
  if (spawned != 0) {
    GTEST_SKIP() << "no program can be run from here";
  }
  EXPECT_EQ(::waitpid(runs, nullptr, 0), runs);
}

TEST(LogScanTest, P9PiecesThatMakeNoRecordAreDamageThoughEachIsWhole) {
  const std::string first = Record("begun", '\x02');
  const std::string middle = Record("goes on", '\x03');
  const std::string last = Record("ended", '\x04');
  const std::string whole = Record("whole");
  EXPECT_EQ(ScanLog(whole + first + middle + last + whole).records, 3U);
  for (const std::string& odd : {first, middle, last, first + middle}) {
    const LogScan scan = ScanLog(whole + odd + whole);
    EXPECT_EQ(scan.damaged_at, whole.size());
    EXPECT_EQ(scan.records, 1U);
    EXPECT_EQ(scan.records_behind, 1U);
  }
}

TEST(RecoveryReportTest, P9ACutIsToldWithItsCause) {
  RecoveryReport report;
  report.cuts = {{.file = "000007.log", .offset = 10, .bytes = 5, .copy = "damaged/000007.log.10"}};
  report.batch_number = report.batch_number_floor = 2;
  EXPECT_THAT(report.Lines(),
              ElementsAre("000007.log: cut 5 bytes at byte 10, the unanswered write that the last "
                          "stop tore; they are in damaged/000007.log.10"));
  report.batch_number = 1;
  EXPECT_THAT(report.Lines(), Contains(HasSubstr("byte 10, what is left of a batch;")));
  report.lost_batches = 1;
  EXPECT_THAT(report.Lines(), Contains(HasSubstr("byte 10, in which no batch is whole;")));
  report.cuts.front().batches_lost = 3;
  EXPECT_THAT(report.Lines(), Contains(HasSubstr("byte 10, with 3 acknowledged batches;")));
}

}  // namespace
}  // namespace delayd::storage
