// Copies of a store: backups, snapshots, and a look at a directory that nobody has open.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"

#include <sys/stat.h>

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class BackupTest : public ::testing::Test {
 protected:
  BackupTest() { store_ = Open("data"); }

  std::unique_ptr<JobStore> Open(const std::string& name) {
    auto store = OpenRocksJobStore({.path = dir_.Sub(name), .env = env_.get()});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }

  void Commit(uint64_t first, uint64_t last) {
    for (uint64_t number = first; number <= last; ++number) {
      Batch batch;
      batch.Put(Table::kTimers, TimerKey(WallFromMillis(1), JobId{number}), "record");
      batch.Put(Table::kIndex, IndexKey(JobId{number}), "place");
      batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
      ASSERT_TRUE(store_->Commit(batch).ok());
    }
  }

  static uint64_t Rows(const JobReader& reader, Table table) {
    uint64_t rows = 0;
    EXPECT_TRUE(
        reader.Scan(table, std::string(1, '\0'), {}, [&](auto, auto) { return ++rows > 0; }).ok());
    return rows;
  }

  testing::TempDir dir_;
  std::unique_ptr<rocksdb::Env> env_ =
      testing::NewFaultEnv(std::make_shared<testing::FaultFileSystem>());
  std::unique_ptr<JobStore> store_;
};

TEST_F(BackupTest, BackupOpensAsAStoreWithEveryRow) {
  Commit(1, 50);
  ASSERT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub("backup")).ok());
  Commit(51, 60);
  const auto copy = Open("backup");
  EXPECT_EQ(Rows(*copy, Table::kTimers), 50U);
  EXPECT_EQ(Rows(*copy, Table::kIndex), 50U);
  EXPECT_EQ(Rows(*store_, Table::kTimers), 60U) << "the store goes on";
}

TEST_F(BackupTest, BackupIsPrivate) {
  ASSERT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub("backup")).ok());

  struct stat info {};

  ASSERT_EQ(::stat(dir_.Sub("backup").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(BackupTest, BackupNeverOverwrites) {
  fs::create_directory(dir_.Sub("backup"));
  const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub("backup"));
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr(dir_.Sub("backup")));
}

TEST_F(BackupTest, BackupIntoNowhereNamesTheDirectory) {
  const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub("no/such/place"));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(dir_.Sub("no/such/place")));
}

TEST_F(BackupTest, BackupTakenWhileCommitsRunIsACutBetweenTwoBatches) {
  std::thread committer([this] { Commit(1, 300); });
  for (int i = 0; i < 3; ++i) {
    const std::string name = "backup" + std::to_string(i);
    ASSERT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub(name)).ok());
    const auto copy = Open(name);
    EXPECT_EQ(Rows(*copy, Table::kTimers), Rows(*copy, Table::kIndex));
  }
  committer.join();
}

TEST_F(BackupTest, SnapshotStandsStillWhileTheStoreGoesOn) {
  Commit(1, 10);
  const auto snapshot = SnapshotRocksJobStore(*store_);
  Commit(11, 20);
  EXPECT_EQ(Rows(**snapshot, Table::kTimers), 10U);
  std::string value;
  EXPECT_FALSE((*snapshot)->Get(Table::kIndex, IndexKey(JobId{11}), &value).ok());
  EXPECT_EQ(Rows(*store_, Table::kTimers), 20U);
}

TEST_F(BackupTest, ReaderSeesWhatAKillLeftAndChangesNothing) {
  Commit(1, 10);
  store_.reset();
  std::string newest;
  for (const auto& entry : fs::directory_iterator(dir_.Sub("data"))) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) {
      newest = entry.path().string();
    }
  }
  const auto size = fs::file_size(newest);
  fs::resize_file(newest, size - 1);
  RecoveryReport report;
  const auto reader = OpenRocksJobReader({.path = dir_.Sub("data"), .env = env_.get()}, &report);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ(Rows(**reader, Table::kTimers), 9U);
  ASSERT_EQ(report.cuts.size(), 1U);
  EXPECT_THAT(report.Lines()[0], HasSubstr("would cut"));
  EXPECT_EQ(fs::file_size(newest), size - 1);
}

TEST_F(BackupTest, ReaderOfAnOpenStoreIsRefused) {
  const auto reader = OpenRocksJobReader({.path = dir_.Sub("data")});
  EXPECT_EQ(reader.status().reason(), "data_dir_in_use");
}

TEST_F(BackupTest, ReaderOfAnEmptyDirectoryFindsNoStore) {
  const auto reader = OpenRocksJobReader({.path = dir_.Sub("empty")});
  EXPECT_EQ(reader.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace delayd::storage
