// What only the RocksDB store can get wrong: directories, locks, schemas, missing files.
#include "storage/rocks_job_store.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include "storage/data_dir.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_figures.h"
#include "storage/rocks_status.h"
#include "storage/rocks_store.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

#include <sys/stat.h>

namespace delayd::storage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class RocksJobStoreTest : public ::testing::Test {
 protected:
  std::string path() const { return dir_.Sub("data"); }

  StatusOr<std::unique_ptr<JobStore>> Open() { return OpenRocksJobStore({.path = path()}); }

  void MakeStore() {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status().message();
    ASSERT_TRUE((*store)->Close().ok());
  }

  void Write(const std::string& name, const std::string& content) {
    test::WriteFile(path() + "/" + name, content);
  }

  std::set<std::string> FileNames() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      found.insert(entry.path().filename().string());
    }
    return found;
  }

  void RemoveAll(const std::string& suffix) {
    for (const std::string& name : FileNames()) {
      if (name.ends_with(suffix)) {
        std::filesystem::remove(path() + "/" + name);
      }
    }
  }

  // The first of a table's files: their properties hold its name.
  std::string FileOf(const std::string& table) const {
    for (const std::string& name : FileNames()) {
      const std::string file = path() + "/" + name;
      if (name.ends_with(".sst") && test::ReadFile(file).find(table) != std::string::npos) {
        return file;
      }
    }
    return "";
  }

  test::TempDir dir_;
};

TEST_F(RocksJobStoreTest, MakesAPrivateDirectoryWithItsParents) {
  auto store = OpenRocksJobStore({.path = dir_.Sub("a/b/c/")});
  ASSERT_TRUE(store.ok()) << store.status().message();

  struct stat info {};

  ASSERT_EQ(::stat(dir_.Sub("a/b/c").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(RocksJobStoreTest, ALookAheadEndsWhereManyDeletedRowsLieInTheWay) {
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  const auto key = [](uint64_t i) { return TimerKey(WallFromMillis(1000), JobId{i}); };
  Batch rows;
  for (uint64_t i = 0; i < 100; ++i) {
    rows.Put(Table::kTimers, key(i), "row");
  }
  ASSERT_TRUE((*store)->Commit(rows).ok());
  Batch deletes;
  deletes.Delete(Table::kTimers, key(5));
  for (uint64_t i = 10; i < 90; ++i) {
    deletes.Delete(Table::kTimers, key(i));
  }
  ASSERT_TRUE((*store)->Commit(deletes).ok());
  const auto count = [&](auto scan) {
    size_t seen = 0;
    const Status scanned = ((**store).*scan)(Table::kTimers, key(0), {}, [&](auto, auto) {
      ++seen;
      return true;
    });
    EXPECT_TRUE(scanned.ok()) << scanned.message();
    return seen;
  };
  EXPECT_EQ(count(&JobStore::Scan), 19U);
  EXPECT_EQ(count(&JobStore::ScanAhead), 9U);
}

TEST_F(RocksJobStoreTest, DirectoryInUseIsRefusedAndNamesTheHolder) {
  auto first = Open();
  ASSERT_TRUE(first.ok());
  const auto second = Open();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.status().reason(), "data_dir_in_use");
  EXPECT_THAT(second.status().message(),
              AllOf(HasSubstr(path()), HasSubstr(std::to_string(::getpid()))));
}

TEST_F(RocksJobStoreTest, DirectoryIsFreeAgainAfterItsHolderIsGone) {
  Open().value().reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(RocksJobStoreTest, DirectoryIsFreeAgainAfterClose) {
  auto closed = Open();
  ASSERT_TRUE((*closed)->Close().ok());
  EXPECT_TRUE(Open().ok());
}

TEST_F(RocksJobStoreTest, NewerSchemaInTheFormatFileIsRefused) {
  MakeStore();
  Write("FORMAT", "delayd-store schema 2\n");
  const auto store = Open();
  EXPECT_EQ(store.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(store.status().reason(), "newer_schema");
  EXPECT_THAT(store.status().message(),
              AllOf(HasSubstr(path()), HasSubstr("schema 2"), HasSubstr("newer delayd")));
}

TEST_F(RocksJobStoreTest, NewerSchemaInTheStoreIsRefused) {
  {
    auto store = Open();
    Batch batch;
    batch.Put(Table::kMeta, kSchemaKey, EncodeNumber(kSchemaKey, 9));
    ASSERT_TRUE((*store)->Commit(batch).ok());
  }
  const auto store = Open();
  EXPECT_EQ(store.status().reason(), "newer_schema");
  EXPECT_THAT(store.status().message(), HasSubstr("schema 9"));
  for (const bool accept_loss : {false, true}) {
    EXPECT_EQ(OpenRocksJobReader({.path = path(), .accept_loss = accept_loss}).status().reason(),
              "newer_schema")
        << "a look calls nothing whole that it does not know";
  }
}

TEST_F(RocksJobStoreTest, TableOfANewerSchemaIsRefused) {
  MakeStore();
  {
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, path(), &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    families.emplace_back("shards", rocksdb::ColumnFamilyOptions());
    rocksdb::DBOptions options;
    options.create_missing_column_families = true;
    options.track_and_verify_wals_in_manifest = true;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, path(), families, &handles, &db).ok());
    for (auto* handle : handles) {
      db->DestroyColumnFamilyHandle(handle);
    }
    delete db;
  }
  const auto store = Open();
  EXPECT_EQ(store.status().reason(), "newer_schema");
  EXPECT_THAT(store.status().message(), HasSubstr("shards"));
}

TEST_F(RocksJobStoreTest, DirectoryOfSomethingElseIsLeftAlone) {
  std::filesystem::create_directory(path());
  Write("holiday.jpg", "not a store");
  const auto store = Open();
  EXPECT_EQ(store.status().reason(), "data_dir_foreign");
  EXPECT_THAT(store.status().message(), HasSubstr("holiday.jpg"));
  EXPECT_THAT(FileNames(), ElementsAre("holiday.jpg"));
  Write("LOCK.delayd", "7\n");  // whose this is nobody knows
  EXPECT_EQ(Open().status().reason(), "data_dir_foreign");
  EXPECT_THAT(FileNames(), UnorderedElementsAre("holiday.jpg", "LOCK.delayd"));
}

TEST_F(RocksJobStoreTest, RocksDbOfAnotherProgramIsLeftAsItIs) {
  rocksdb::Options options;
  options.create_if_missing = true;
  {
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, path(), &db).ok());
    ASSERT_TRUE(db->Put({}, "theirs", "value").ok());
    delete db;
  }
  std::string log;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    log = entry.path().extension() == ".log" ? entry.path().string() : log;
  }
  std::ofstream(log, std::ios::app) << "what it is just writing";
  const auto size = std::filesystem::file_size(log);
  const std::set<std::string> names = FileNames();
  EXPECT_EQ(Open().status().reason(), "data_dir_foreign");
  EXPECT_EQ(std::filesystem::file_size(log), size);
  EXPECT_EQ(FileNames(), names);
  std::filesystem::resize_file(log, size - 23);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status theirs = rocksdb::DB::Open(options, path(), &db);
  EXPECT_TRUE(theirs.ok()) << theirs.ToString();
  delete db;
}

TEST_F(RocksJobStoreTest, LogsOfOtherProgramsAreNoDamagedStore) {
  std::filesystem::create_directory(path());
  Write("app.log", "12:00 started");
  EXPECT_EQ(Open().status().reason(), "data_dir_foreign");
}

TEST_F(RocksJobStoreTest, PathThatIsAFileIsRefused) {
  test::WriteFile(path(), "a file");
  const auto store = Open();
  EXPECT_EQ(store.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(store.status().message(), HasSubstr("is not a directory"));
}

TEST_F(RocksJobStoreTest, ALinkThatLeadsNowhereIsToldAsOne) {
  std::filesystem::create_symlink("/nonexistent/disk", path());
  const auto store = Open();
  EXPECT_EQ(store.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(store.status().message(), AllOf(HasSubstr(path()), HasSubstr("mounted?")));
}

TEST_F(RocksJobStoreTest, DirectoryThatCannotBeMadeNamesPathAndCure) {
  if (::geteuid() == 0) {
    const auto store = OpenRocksJobStore({.path = "/proc/nowhere/data"});
    EXPECT_FALSE(store.ok());
    EXPECT_THAT(store.status().message(), HasSubstr("/proc/nowhere"));
    return;
  }
  const auto store = OpenRocksJobStore({.path = "/delayd-not-mine/data"});
  EXPECT_EQ(store.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(store.status().message(), HasSubstr("make it for the daemon's user"));
}

TEST_F(RocksJobStoreTest, P9MissingCurrentIsDamageAndNotANewStore) {
  MakeStore();
  std::filesystem::remove(path() + "/CURRENT");
  const auto store = Open();
  EXPECT_EQ(store.status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(store.status().reason(), "damaged_store");
  EXPECT_FALSE(std::filesystem::exists(path() + "/CURRENT"));
}

TEST_F(RocksJobStoreTest, P9MissingManifestIsDamage) {
  MakeStore();
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    if (entry.path().filename().string().starts_with("MANIFEST")) {
      std::filesystem::remove(entry.path());
    }
  }
  EXPECT_EQ(Open().status().reason(), "damaged_store");
}

TEST_F(RocksJobStoreTest, P9MissingTableFileIsDamage) {
  {
    auto store = Open();
    Batch batch;
    batch.Put(Table::kTimers, "key", "value");
    ASSERT_TRUE((*store)->Commit(batch).ok());
    ASSERT_TRUE((*store)->Close().ok());
  }
  RemoveAll(".sst");
  const Status status = Open().status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.reason(), "damaged_store");
  EXPECT_THAT(status.message(), AllOf(HasSubstr(".sst"), HasSubstr("restore a backup")));
  EXPECT_THAT(status.message(), Not(HasSubstr(".ldb"))) << "no file had that name";
}

// A service that is started again for it would be started for ever.
TEST_F(RocksJobStoreTest, P9DamageThatACompactionMeetsIsToldAsSuch) {
  const auto commit = [](JobStore* store) {
    Batch batch;
    batch.Put(Table::kByQueue, "row", "");
    return store->Commit(batch);
  };
  for (int table_files = 0; table_files < 4; ++table_files) {  // so many are merged
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status().message();
    ASSERT_TRUE(commit(store->get()).ok());
    if (table_files == 0) {
      ASSERT_TRUE((*store)->Close().ok());
    }
  }
  const std::string file = FileOf("by_queue");
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).put('x');
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (commit(store->get()).ok() && std::chrono::steady_clock::now() < end) {
  }
  for (const Status& stopped : {commit(store->get()), (*store)->Close()}) {
    EXPECT_EQ(stopped.code(), StatusCode::kDataLoss);
    EXPECT_EQ(stopped.reason(), "damaged_store");
    EXPECT_THAT(stopped.message(), AllOf(HasSubstr(file), HasSubstr("restore a backup")));
    EXPECT_THAT(stopped.message(), Not(HasSubstr("restart")));
  }
}

// A full disk in the midst of a recovery is none of a daemon that is not there.
TEST(StopCauseTest, TheFirstErrorKeepsItsCode) {
  StopCause stop;
  EXPECT_TRUE(stop.Check().ok());
  stop.Set(ResourceExhausted("no room; free some space", "disk_full"));
  stop.Set(Unavailable("what followed", "storage_io"));
  EXPECT_EQ(stop.Check().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(stop.Check().reason(), "disk_full");
  EXPECT_THAT(stop.Check().message(), AllOf(HasSubstr("no room"), HasSubstr("restart")));
}

// To open a pipe waits for whoever writes into it.
TEST_F(RocksJobStoreTest, P9WhatIsNoFileIsNamedAndNotWaitedFor) {
  MakeStore();
  MakeStore();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("LOG") && !name.starts_with("OPTIONS")) {
      names.push_back(name);
    }
  }
  EXPECT_GE(names.size(), 9U);
  const std::set<std::string> may_be_moved = {
      "LOCK", "LOCK.delayd", "BATCH", "IDENTITY", "FORMAT", "CURRENT"};
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> kinds = {
      {"directory", [](const auto& file) { std::filesystem::create_directory(file); }},
      {"no regular file", [](const auto& file) { ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); }},
      {"leads nowhere",
       [](const auto& file) { std::filesystem::create_symlink("/nonexistent/x", file); }}};
  for (const std::string& name : names) {
    const std::string file = path() + "/" + name;
    std::filesystem::rename(file, dir_.Sub("aside"));
    for (const auto& [what, make] : kinds) {
      make(file);
      const std::vector<Status> refusals = {Open().status(),
                                            OpenRocksJobReader({.path = path()}).status(),
                                            DataDir::RequireStore(path())};
      for (const Status& status : refusals) {
        EXPECT_EQ(status.reason(), "damaged_store") << name << " " << status.message();
        EXPECT_THAT(
            status.message(),
            AllOf(HasSubstr("/" + name + " is"),
                  HasSubstr(what),
                  HasSubstr(may_be_moved.contains(name) ? "move it away" : "restore a backup")));
      }
      std::filesystem::remove(file);
    }
    std::filesystem::rename(dir_.Sub("aside"), file);
  }
  std::filesystem::rename(path() + "/BATCH", dir_.Sub("aside"));
  std::filesystem::create_symlink(dir_.Sub("aside"), path() + "/BATCH");
  EXPECT_TRUE(Open().ok()) << "a link that leads to a file";
  std::filesystem::create_directory(path() + "/RECOVERY");
  EXPECT_THAT(Open().status().message(), HasSubstr("make an empty file in its place"));
}

// A service that is started again each second must not fill the disk.
TEST_F(RocksJobStoreTest, AStartThatCannotWriteBatchLeavesNothing) {
  MakeStore();
  std::filesystem::remove(path() + "/BATCH");
  std::filesystem::create_symlink("/proc/self/exe", path() + "/BATCH");  // a program that runs
  const std::set<std::string> before = FileNames();
  EXPECT_THAT(Open().status().message(), HasSubstr("cannot open " + path() + "/BATCH"));
  EXPECT_EQ(FileNames(), before);
}

TEST_F(RocksJobStoreTest, P9UnreadableFormatFileIsDamage) {
  MakeStore();
  Write("FORMAT", "delayd-stor");
  EXPECT_EQ(Open().status().reason(), "damaged_store");
}

TEST_F(RocksJobStoreTest, P9TablesWithoutTheirListAreDamage) {
  MakeStore();
  std::filesystem::remove(path() + "/FORMAT");
  std::filesystem::remove(path() + "/CURRENT");
  Write("000123.sst", "");
  EXPECT_EQ(Open().status().reason(), "damaged_store");
}

TEST_F(RocksJobStoreTest, HalfMadeStoreIsMadeAgain) {
  MakeStore();
  std::filesystem::remove(path() + "/FORMAT");
  std::filesystem::remove(path() + "/CURRENT");
  RemoveAll(".sst");
  RemoveAll(".log");
  const auto store = Open();
  EXPECT_TRUE(store.ok()) << store.status().message();
}

// A first batch is committed only after the mark: without it something was lost, or the directory
// is a backup that was not finished.
TEST_F(RocksJobStoreTest, P9JobsWithoutTheLastMarkAreDamage) {
  {
    auto store = Open();
    ASSERT_TRUE(store.ok());
    Batch batch;
    batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, 1));
    ASSERT_TRUE((*store)->Commit(batch).ok());
  }
  std::filesystem::remove(path() + "/FORMAT");
  const std::set<std::string> before = FileNames();
  EXPECT_EQ(Open().status().reason(), "damaged_store");
  EXPECT_EQ(FileNames(), before) << "not even its log goes into tables";
}

// Someone who looks while the daemon is stopped must not be sent to look for a disk.
TEST_F(RocksJobStoreTest, P9AStoreThatMustExistAndLacksItsLastMarkIsNotCalledNone) {
  MakeStore();
  std::filesystem::remove(path() + "/FORMAT");
  for (const Status& refused :
       {OpenRocksJobStore({.path = path(), .must_exist = true}).status(),
        OpenRocksJobReader({.path = path()}).status(),
        OpenRocksJobReader({.path = path(), .accept_loss = true}).status()}) {
    EXPECT_EQ(refused.reason(), "damaged_store");
    EXPECT_THAT(refused.message(), HasSubstr("its FORMAT file is missing"));
    // Where it was cut short, a FORMAT file written by hand would shut it for good.
    EXPECT_THAT(refused.message(),
                HasSubstr("after a first start that was cut short; start delayd"));
    EXPECT_THAT(refused.message(), Not(HasSubstr("schema 1")));
  }
  EXPECT_FALSE(std::filesystem::exists(path() + "/FORMAT"));
}

TEST_F(RocksJobStoreTest, StoreWithoutItsLastMarkIsMarkedAtTheNextOpen) {
  {
    auto store = Open();
    ASSERT_TRUE(store.ok());
  }
  std::filesystem::remove(path() + "/FORMAT");
  { ASSERT_TRUE(Open().ok()); }
  EXPECT_TRUE(std::filesystem::exists(path() + "/FORMAT"));
}

// RocksDB's own reading of a damaged tail ends the process, or reads the file by other rules.
TEST_F(RocksJobStoreTest, ABitFlippedInTheTailOfATableRefusesAndNamesTheFile) {
  MakeStore();
  MakeStore();  // replays the log into table files
  std::string table;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    table = entry.path().extension() == ".sst" ? entry.path().string() : table;
  }
  ASSERT_FALSE(table.empty());
  const std::string whole = test::ReadFile(table);
  // The end of the properties, the metaindex, the index, the footer. Bit 7 of the properties' last
  // byte says that a block has a hash index.
  int refused = 0;
  for (size_t at = whole.size() - 140; at < whole.size(); at += 1) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x80);
    test::WriteFile(table, flipped);
    const auto store = Open();
    if (!store.ok()) {
      ++refused;
      EXPECT_EQ(store.status().code(), StatusCode::kDataLoss);
      EXPECT_THAT(std::string(store.status().message()),
                  HasSubstr(std::filesystem::path(table).filename().string()));
    }
  }
  // What is left is the padding of the footer.
  EXPECT_GE(refused, 100);
  test::WriteFile(table, whole);
  EXPECT_TRUE(Open().ok());
}

// On a disk that hangs the thread that serves must not wait for RocksDB's own log, nor for the
// removal of files.
TEST_F(RocksJobStoreTest, AskingForFiguresWritesNothing) {
  // Of RocksDB's LOG, which each open begins anew.
  const auto lines = [this](int times) {
    auto store = Open();
    EXPECT_TRUE(store.ok()) << store.status().message();
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(ReadRocksFigures(**store).background_errors, 0U);
    }
    EXPECT_TRUE((*store)->Close().ok());
    return std::ranges::count(test::ReadFile(path() + "/LOG"), '\n');
  };
  MakeStore();
  const auto without = lines(0);
  EXPECT_GT(without, 0);
  EXPECT_LT(lines(100), without + 100);
}

TEST(RocksStatusTest, LimitsOfTheSystemAreNotTakenForASickDisk) {
  const auto of = [](const char* words) {
    return FromRocks(rocksdb::Status::IOError("While appending to file: /srv/4.log", words),
                     "commit failed");
  };
  EXPECT_EQ(of("Disk quota exceeded").reason(), "disk_full");
  EXPECT_THAT(of("Disk quota exceeded").message(),
              HasSubstr("; raise the quota, or free some space"));
  EXPECT_TRUE(IsNoRoom(rocksdb::IOStatus::IOError("/srv/4.log", "Disk quota exceeded")));
  EXPECT_TRUE(IsNoRoom(rocksdb::IOStatus::NoSpace("/srv/4.log", "No space left on device")));
  EXPECT_FALSE(IsNoRoom(rocksdb::IOStatus::IOError("/srv/4.log", "Input/output error")));
  EXPECT_THAT(of("File too large").message(), HasSubstr("(ulimit -f, LimitFSIZE=)"));
  EXPECT_THAT(of("Too many open files").message(), HasSubstr("limit of open files"));
  EXPECT_EQ(of("Operation not permitted").reason(), "permission_denied");
  EXPECT_THAT(of("Operation not permitted").message(), HasSubstr("lsattr"));
  EXPECT_THAT(of("Input/output error").message(), HasSubstr("dmesg"));
}

// As RocksDB tells it where LOCK.delayd was removed under a daemon.
TEST(RocksStatusTest, ALockThatAnotherProcessHoldsIsNoSickDisk) {
  const Status held = FromRocks(
      rocksdb::Status::IOError("While lock file: /srv/LOCK", "Resource temporarily unavailable"),
      "cannot open data directory /srv");
  EXPECT_EQ(held.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(held.reason(), "data_dir_in_use");
  EXPECT_THAT(held.message(), HasSubstr("another process has the store open: stop it"));
}

}  // namespace
}  // namespace delayd::storage
