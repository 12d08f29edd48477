// A data directory that is moved away under a store, and what stands in its place then.
#include "storage/same_directory.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "storage/store_env.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/count_rows.h"

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SameDirectoryTest : public ::testing::Test {
 protected:
  // As in a restore of a backup of 50 rows, with a store of 60 still open.
  void SetUp() override {
    store_ = Open("data");
    for (uint64_t number = 1; number <= 60; ++number) {
      ASSERT_TRUE(Commit(number).ok());
      if (number == 50) {
        ASSERT_TRUE(BackUpRocksJobStore(store_.get(), dir_.Sub("backup")).ok());
      }
    }
    fs::rename(dir_.Sub("data"), dir_.Sub("data.old"));
    fs::copy(dir_.Sub("backup"), dir_.Sub("data"));
    restored_ = Files("data");
  }

  std::unique_ptr<JobStore> Open(const std::string& name) {
    auto store = OpenRocksJobStore({.path = dir_.Sub(name)});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }

  Status Commit(uint64_t number) {
    Batch batch;
    batch.Put(Table::kTimers, TimerKey(WallFromMillis(1), JobId{number}), "record");
    batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
    return store_->Commit(batch);
  }

  std::map<std::string, std::string> Files(const std::string& name) {
    std::map<std::string, std::string> files;
    for (const fs::directory_entry& file : fs::directory_iterator(dir_.Sub(name))) {
      files[file.path().filename()] = test::ReadFile(file.path());
    }
    return files;
  }

  test::TempDir dir_;
  std::unique_ptr<JobStore> store_;
  std::map<std::string, std::string> restored_;
};

TEST_F(SameDirectoryTest, P9AnOrderlyEndTouchesNeitherOfThem) {
  const Status closed = store_->Close();
  EXPECT_EQ(closed.reason(), "data_dir_replaced");
  EXPECT_THAT(closed.message(), HasSubstr(dir_.Sub("data")));
  store_.reset();
  EXPECT_EQ(Files("data"), restored_);
  EXPECT_EQ(CountRows(*Open("data")), 50U);
  EXPECT_EQ(CountRows(*Open("data.old")), 60U);
}

// Where it is a mount point.
TEST_F(SameDirectoryTest, P9NorWhereOnlyWhatIsInItWasReplaced) {
  fs::remove_all(dir_.Sub("data"));
  fs::rename(dir_.Sub("data.old"), dir_.Sub("data"));
  fs::create_directory(dir_.Sub("data.old"));
  ASSERT_TRUE(Commit(61).ok());
  for (const auto& [name, content] : Files("data")) {
    fs::rename(dir_.Sub("data") + "/" + name, dir_.Sub("data.old") + "/" + name);
  }
  EXPECT_EQ(store_->Close().reason(), "data_dir_replaced");
  store_.reset();
  EXPECT_TRUE(Files("data").empty());
  EXPECT_EQ(CountRows(*Open("data.old")), 61U);
}

TEST_F(SameDirectoryTest, P1NoCommitIsTakenAnyMore) {
  EXPECT_EQ(Commit(61).reason(), "data_dir_replaced");
  EXPECT_FALSE(Commit(62).ok());
  EXPECT_FALSE(BackUpRocksJobStore(store_.get(), dir_.Sub("other")).ok());
  store_.reset();
  EXPECT_EQ(Files("data"), restored_);
  EXPECT_EQ(CountRows(*Open("data.old")), 60U);
}

TEST_F(SameDirectoryTest, P1AStoreThatRestsKnowsIt) {
  EXPECT_EQ(store_->Check().reason(), "data_dir_replaced");
  fs::rename(dir_.Sub("data"), dir_.Sub("restored"));
  fs::rename(dir_.Sub("data.old"), dir_.Sub("data"));
  EXPECT_FALSE(Commit(61).ok()) << "its end was told";
}

// It is moved away when the first table file is made there.
class MovedAtATable final : public rocksdb::FileSystemWrapper {
 public:
  explicit MovedAtATable(std::string path)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), path_(std::move(path)) {}

  const char* Name() const override { return "MovedAtATable"; }

  rocksdb::IOStatus NewWritableFile(const std::string& path,
                                    const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    if (path.ends_with(".sst") && fs::exists(path_)) {
      fs::rename(path_, path_ + ".old");
    }
    return target()->NewWritableFile(path, options, result, debug);
  }

 private:
  const std::string path_;
};

TEST_F(SameDirectoryTest, P1ItIsTheCauseOfWhatRocksDBsThreadsMeetThere) {
  const auto env = rocksdb::NewCompositeEnv(std::make_shared<MovedAtATable>(dir_.Sub("other")));
  auto opened = OpenRocksJobStore({.path = dir_.Sub("other"), .env = env.get()});
  ASSERT_TRUE(opened.ok());
  store_ = std::move(opened).value();
  ASSERT_TRUE(Commit(1).ok());
  EXPECT_FALSE(BackUpRocksJobStore(store_.get(), dir_.Sub("copy")).ok()) << "it flushes";
  EXPECT_EQ(Commit(2).reason(), "data_dir_replaced");
  store_.reset();
}

TEST_F(SameDirectoryTest, P1OneThatIsGoneTakesNoCommitEither) {
  fs::remove_all(dir_.Sub("data"));
  EXPECT_FALSE(Commit(61).ok());
  EXPECT_FALSE(fs::exists(dir_.Sub("data")));
}

// A loop of links stands for an error that is none of those of a path that leads nowhere.
TEST(SameDirectoryFilesTest, WhatCannotBeLookedAtForAMomentIsTheSame) {
  const test::TempDir dir;
  const std::string data = dir.Sub("data");
  fs::create_directory(data);
  std::ofstream(data + "/LOCK.delayd") << "1";
  const SameDirectory opened(data);
  fs::rename(data, dir.Sub("data.old"));
  fs::create_symlink("data", data);
  EXPECT_TRUE(opened.Check().ok());
  const Status never_seen = SameDirectory(data).Check();
  EXPECT_EQ(never_seen.reason(), "storage_io");
  EXPECT_THAT(never_seen.message(), HasSubstr("/LOCK.delayd: Too many levels"));
  fs::remove(data);
  EXPECT_EQ(opened.Check().reason(), "data_dir_replaced");
}

// As the gradual removal of a log opens it: the next start would find a store that is not ours.
TEST(SameDirectoryFilesTest, P9NoFileIsMadeOrCutThereByWhicheverCall) {
  const test::TempDir dir;
  const std::string data = dir.Sub("data");
  fs::create_directory(data);
  std::ofstream(data + "/LOCK.delayd") << "1";
  const auto files = NewSameDirectory(rocksdb::FileSystem::Default(), data);
  fs::rename(data, dir.Sub("data.old"));
  fs::create_directory(data);
  std::ofstream(data + "/kept") << "content";
  const auto expect_refused = [&](const std::string& path) {
    std::unique_ptr<rocksdb::FSWritableFile> written;
    std::unique_ptr<rocksdb::FSRandomRWFile> both;
    std::unique_ptr<rocksdb::MemoryMappedFileBuffer> mapped;
    EXPECT_FALSE(files->ReopenWritableFile(path, {}, &written, nullptr).ok());
    EXPECT_FALSE(files->NewRandomRWFile(path, {}, &both, nullptr).ok());
    EXPECT_FALSE(files->NewMemoryMappedFileBuffer(path, &mapped).ok());
    EXPECT_FALSE(files->Truncate(path, 1, {}, nullptr).ok());
  };
  expect_refused(data + "/000004.log.trash");
  expect_refused(data + "/kept");
  EXPECT_FALSE(fs::exists(data + "/000004.log.trash"));
  EXPECT_EQ(fs::file_size(data + "/kept"), 7U);
}

// RocksDB renames and removes some files through its environment.
TEST(SameDirectoryFilesTest, P9NoFileIsRenamedOrRemovedThereByTheEnvironment) {
  const test::TempDir dir;
  const std::string data = dir.Sub("data");
  fs::create_directory(data);
  std::ofstream(data + "/LOCK.delayd") << "1";
  const auto env = NewStoreEnv(nullptr, data, 4096);
  fs::rename(data, dir.Sub("data.old"));
  fs::create_directory(data);
  std::ofstream(data + "/kept") << "content";
  EXPECT_FALSE(env->RenameFile(data + "/kept", data + "/taken").ok());
  EXPECT_FALSE(env->DeleteFile(data + "/kept").ok());
  EXPECT_TRUE(fs::exists(data + "/kept"));
}

}  // namespace
}  // namespace delayd::storage
