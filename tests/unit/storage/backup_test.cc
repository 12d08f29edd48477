// Copies of a store: backups, snapshots, and a look at a directory that nobody has open.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/version.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/count_rows.h"
#include "tests/unit/storage/small_disk.h"

#include <sys/stat.h>

namespace {

// Where a file of this name is, a directory cannot be listed behind its first one; empty: all can.
std::string unlisted;  // NOLINT: read where C calls us
int entries_left = 0;  // NOLINT

}  // namespace

// Stands before the C library's.
extern "C" dirent* readdir(DIR* dir) {
  if (!unlisted.empty() && faccessat(dirfd(dir), unlisted.c_str(), F_OK, 0) == 0 &&
      entries_left-- <= 0) {
    errno = EIO;
    return nullptr;
  }
  errno = 0;  // what the end of a directory is told by
  static const auto next = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  return next(dir);
}

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

  test::TempDir dir_;
  std::unique_ptr<rocksdb::Env> env_ = test::NewFaultEnv(std::make_shared<test::FaultFileSystem>());
  std::unique_ptr<JobStore> store_;
};

TEST_F(BackupTest, BackupOpensAsAStoreWithEveryRow) {
  Commit(1, 50);
  ASSERT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub("backup")).ok());
  Commit(51, 60);
  const auto copy = Open("backup");
  EXPECT_EQ(CountRows(*copy), 50U);
  EXPECT_EQ(CountRows(*copy, Table::kIndex), 50U);
  EXPECT_EQ(CountRows(*store_), 60U) << "the store goes on";
}

TEST_F(BackupTest, BackupIsPrivate) {
  ASSERT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub("backup")).ok());

  struct stat info {};

  ASSERT_EQ(::stat(dir_.Sub("backup").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

// Its flush would fail, which ends a store that else hands out and acks what it has.
TEST_F(BackupTest, ABackupOnAFullDiskIsRefusedAndTheStoreGoesOn) {
  const std::unique_ptr<rocksdb::Env> env =
      rocksdb::NewCompositeEnv(std::make_shared<SmallDisk>(uint64_t{1} << 20));
  {
    auto store = OpenRocksJobStore({.path = dir_.Sub("full"), .env = env.get()});
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
    Commit(1, 3);
    const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub("copy"));
    EXPECT_EQ(status.reason(), "disk_full");
    EXPECT_THAT(status.message(), HasSubstr(dir_.Sub("full")));
    EXPECT_FALSE(fs::exists(dir_.Sub("copy")));
    Commit(4, 5);
    EXPECT_TRUE(store_->Close().ok());
    store_.reset();
  }
}

TEST_F(BackupTest, ACopyThatCannotBeListedFailsTheBackupAndNotTheProcess) {
  Commit(1, 5);
  fs::create_directory(dir_.Sub("backups"));
  // Of a copy it is written shortly before the files are synced one by one.
  fs::remove(dir_.Sub("data/BATCH"));
  unlisted = "BATCH";
  entries_left = 3;  // two are the directory itself and the one above
  const Status failed = BackUpRocksJobStore(store_.get(), dir_.Sub("backups/one"));
  unlisted.clear();
  EXPECT_EQ(failed.reason(), "storage_io") << failed.message();
  EXPECT_FALSE(fs::exists(dir_.Sub("backups/one/FORMAT")));
}

TEST_F(BackupTest, BackupNeverOverwrites) {
  fs::create_directory(dir_.Sub("backup"));
  const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub("backup"));
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr(dir_.Sub("backup")));
}

TEST_F(BackupTest, ADeadLinkInTheBackupsPlaceIsToldAsSomethingThatExists) {
  fs::create_directory_symlink(dir_.Sub("nowhere"), dir_.Sub("backup"));
  const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub("backup"));
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr(dir_.Sub("backup") + " exists"));
}

TEST_F(BackupTest, BackupIntoNowhereNamesTheDirectory) {
  const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub("no/such/place"));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(dir_.Sub("no/such/place")));
}

TEST_F(BackupTest, APathThatIsTooLongIsToldAsThat) {
  std::string path = dir_.path();
  while (path.size() < 5000) {
    path += "/directory";
  }
  for (const size_t bytes : {5000U, 4090U}) {
    const Status status = BackUpRocksJobStore(store_.get(), path.substr(0, bytes));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("no more than 4032"));
  }
}

TEST_F(BackupTest, P9BackupIntoTheDataDirectoryIsRefused) {
  fs::create_directory(dir_.Sub("data/below"));
  fs::create_directory_symlink(dir_.Sub("data"), dir_.Sub("link"));
  for (const char* name :
       {"data/000999.sst", "data/below/y", "data/../data/y", "link/y", "link/below/y"}) {
    const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub(name));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr("it lies in the data directory"));
    EXPECT_FALSE(fs::exists(dir_.Sub(name)));
  }
  EXPECT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub("data/../data-2")).ok());
}

// RocksDB builds the copy in DIR.tmp, and removes every file that it finds there first.
TEST_F(BackupTest, P9WhatStandsWhereTheCopyIsBuiltIsNotRemoved) {
  Commit(1, 5);
  const std::string staging = dir_.Sub("backup.tmp");
  const auto back_up = [this] {
    return BackUpRocksJobStore(store_.get(), dir_.Sub("backup") + "//");
  };
  for (const char* name : {"FORMAT", "notes.txt", "LOCK", "12.sst.old", "MANIFEST-", "x.log"}) {
    fs::create_directory(staging);
    std::ofstream(staging + "/" + name) << "somebody's";
    std::ofstream(staging + "/000012.sst") << "somebody's";
    const Status status = back_up();
    EXPECT_EQ(status.code(), StatusCode::kAlreadyExists) << name;
    EXPECT_THAT(status.message(), HasSubstr(staging + ", where the copy would be built"));
    EXPECT_THAT(status.message(), HasSubstr(std::string("holds ") + name));
    EXPECT_TRUE(fs::exists(staging + "/" + name));
    EXPECT_TRUE(fs::exists(staging + "/000012.sst"));
    fs::remove_all(staging);
  }
  std::ofstream(staging) << "a file";
  EXPECT_THAT(back_up().message(), HasSubstr("is no directory"));
  fs::remove(staging);
  fs::create_directories(staging + "/000013.sst");
  EXPECT_EQ(back_up().code(), StatusCode::kAlreadyExists) << "a directory with a file's name";
  fs::remove_all(staging);
}

TEST_F(BackupTest, WhatABackupThatWasCutShortHasLeftIsReplaced) {
  Commit(1, 5);
  fs::create_directory(dir_.Sub("backup.tmp"));
  for (const char* name :
       {"000012.sst", "000013.log", "MANIFEST-000004", "CURRENT", "OPTIONS-000007", "4.dbtmp"}) {
    std::ofstream(dir_.Sub("backup.tmp") + "/" + name) << "half";
  }
  const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub("backup") + "/");
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(fs::exists(dir_.Sub("backup.tmp")));
  EXPECT_EQ(CountRows(*Open("backup")), 5U);
}

TEST_F(BackupTest, TwoDaemonsDoNotRemoveEachOthersBackup) {
  Commit(1, 5);
  const std::unique_ptr<JobStore> other = Open("other");
  Status second;
  const Status first = BackUpRocksJobStore(store_.get(), dir_.Sub("backup"), [&] {
    second = BackUpRocksJobStore(other.get(), dir_.Sub("backup"));
    return true;
  });
  EXPECT_EQ(second.reason(), "backup_busy");
  EXPECT_THAT(second.message(), HasSubstr("another backup is being written to"));
  ASSERT_TRUE(first.ok()) << first.message();
  EXPECT_EQ(CountRows(*Open("backup")), 5U);
}

TEST_F(BackupTest, BackupTakenWhileCommitsRunIsACutBetweenTwoBatches) {
  std::thread committer([this] { Commit(1, 300); });
  for (int i = 0; i < 3; ++i) {
    const std::string name = "backup" + std::to_string(i);
    ASSERT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub(name)).ok());
    const auto copy = Open(name);
    EXPECT_EQ(CountRows(*copy), CountRows(*copy, Table::kIndex));
  }
  committer.join();
}

// Calls back at each read of a log, which stands for commits that run while a backup copies it.
class WatchedLogs final : public rocksdb::FileSystemWrapper {
 public:
  using OnRead = std::function<void(size_t bytes)>;  // 0: it was opened

  WatchedLogs(const std::shared_ptr<rocksdb::FileSystem>& base, OnRead on_read)
      : FileSystemWrapper(base), on_read_(std::move(on_read)) {}

  const char* Name() const override { return "WatchedLogs"; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->NewSequentialFile(path, options, result, debug);
    // The end is that of what a backup copies.
    if (status.ok() && (path.ends_with(".log") || path.ends_with(".log.trash"))) {
      on_read_(0);
      *result = std::make_unique<Log>(std::move(*result), on_read_);
    }
    return status;
  }

 private:
  class Log final : public rocksdb::FSSequentialFileOwnerWrapper {
   public:
    Log(std::unique_ptr<rocksdb::FSSequentialFile> file, OnRead on_read)
        : FSSequentialFileOwnerWrapper(std::move(file)), on_read_(std::move(on_read)) {}

    rocksdb::IOStatus Read(size_t bytes,
                           const rocksdb::IOOptions& options,
                           rocksdb::Slice* result,
                           char* scratch,
                           rocksdb::IODebugContext* debug) override {
      rocksdb::IOStatus status = target()->Read(bytes, options, result, scratch, debug);
      on_read_(bytes);
      return status;
    }

   private:
    OnRead on_read_;
  };

  OnRead on_read_;
};

// The zeroes ahead of the last record are filled while they are copied, page by page: the copy gets
// the old zeroes of one page and the new records of the next.
TEST_F(BackupTest, P1ALogThatIsFilledWhileItIsCopiedLeavesNoHoleInTheBackup) {
  if (ROCKSDB_MAJOR > 7) {
    GTEST_SKIP() << "newer ones name a log without a look at it, which is when it is filled here";
  }
  constexpr size_t kCopyStepBytes = 65536;
  store_.reset();
  bool opened = true;
  bool copied = true;
  const auto logs = std::make_shared<WatchedLogs>(env_->GetFileSystem(), [&](size_t bytes) {
    if (!std::exchange(opened, true)) {
      Commit(51, 55);  // the zeroes ahead come with the first record
    } else if (bytes == kCopyStepBytes && !std::exchange(copied, true)) {
      Commit(56, 1055);  // over the pages that are copied next
    }
  });
  const std::unique_ptr<rocksdb::Env> watched = rocksdb::NewCompositeEnv(logs);
  store_ = OpenRocksJobStore({.path = dir_.Sub("data"), .env = watched.get()}).value();
  Commit(1, 50);
  opened = copied = false;
  EXPECT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub("backup")).ok());
  EXPECT_TRUE(copied) << "the log was not written while it was copied";
  EXPECT_EQ(CountRows(*store_), 1055U) << "the store's own log is whole";
  store_.reset();
  const auto copy = OpenRocksJobStore({.path = dir_.Sub("backup"), .env = env_.get()});
  ASSERT_TRUE(copy.ok()) << copy.status().message();
  EXPECT_GE(CountRows(**copy), 55U);
  EXPECT_LT(CountRows(**copy), 1055U) << "there was no hole";
  EXPECT_EQ(CountRows(**copy), CountRows(**copy, Table::kIndex));
}

TEST_F(BackupTest, SnapshotStandsStillWhileTheStoreGoesOn) {
  Commit(1, 10);
  const auto snapshot = SnapshotRocksJobStore(*store_);
  Commit(11, 20);
  EXPECT_EQ(CountRows(**snapshot), 10U);
  std::string value;
  EXPECT_FALSE((*snapshot)->Get(Table::kIndex, IndexKey(JobId{11}), &value).ok());
  EXPECT_EQ(CountRows(*store_), 20U);
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
  EXPECT_EQ(CountRows(**reader), 9U);
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
  EXPECT_FALSE(fs::exists(dir_.Sub("empty"))) << "a look makes no directory";
}

TEST_F(BackupTest, AStoreThatMustExistIsNotMadeWhereThereIsNone) {
  const std::string mount_point = dir_.Sub("mount_point");
  EXPECT_EQ(OpenRocksJobStore({.path = mount_point, .must_exist = true}).status().reason(),
            "no_store");
  EXPECT_FALSE(fs::exists(mount_point));
  fs::create_directory(mount_point);
  const auto store = OpenRocksJobStore({.path = mount_point + "/", .must_exist = true});
  EXPECT_EQ(store.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(store.status().message(), HasSubstr(mount_point + " holds no store; is its disk"));
  EXPECT_TRUE(fs::is_empty(mount_point));
  std::ofstream(mount_point + "/photo.jpg") << "somebody's";
  EXPECT_EQ(OpenRocksJobStore({.path = mount_point, .must_exist = true}).status().reason(),
            "no_store");
  fs::remove(mount_point + "/photo.jpg");
  std::ofstream(mount_point + "/000009.sst") << "a table without its store";
  EXPECT_EQ(OpenRocksJobStore({.path = mount_point, .must_exist = true}).status().reason(),
            "damaged_store");
  store_.reset();
  EXPECT_TRUE(
      OpenRocksJobStore({.path = dir_.Sub("data"), .must_exist = true, .env = env_.get()}).ok());
}

}  // namespace
}  // namespace delayd::storage
