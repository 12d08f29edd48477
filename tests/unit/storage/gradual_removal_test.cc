// Large files lose their end piece by piece, and nothing that still has a name loses a byte.
#include "storage/gradual_removal.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/no_threads.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;
using test::FaultFileSystem;
using test::IoCall;
using test::IoFault;

constexpr uint64_t kStep = 4096;
// Takes 3,700 steps, 37 seconds: it lasts longer than a test may be held up.
constexpr uint64_t kHuge = uint64_t{1} << 40;

void WaitFor(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
}

class GradualRemovalTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, uint64_t bytes) {
    const std::string path = dir_.Sub(name);
    std::ofstream(path, std::ios::binary).close();
    fs::resize_file(path, bytes);  // takes no room, however large
    return path;
  }

  rocksdb::IOStatus Delete(const std::string& path) {
    return files_->DeleteFile(path, rocksdb::IOOptions(), nullptr);
  }

  static std::string Trash(const std::string& path) { return path + std::string(kTrashEnding); }

  test::TempDir dir_;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
  std::shared_ptr<rocksdb::FileSystem> files_ = NewGradualRemoval(disk_, dir_.path(), kStep);
};

TEST_F(GradualRemovalTest, SmallFileGoesAtOnceAsItIs) {
  const std::string path = Write("000001.log", kStep);
  EXPECT_TRUE(Delete(path).ok());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(disk_->calls(IoCall::kRename), 0U);
  EXPECT_EQ(disk_->calls(IoCall::kTruncate), 0U);
}

TEST_F(GradualRemovalTest, LargeFileLosesAStepAtATime) {
  const std::string path = Write("000001.log", 5 * kStep + 1);
  EXPECT_TRUE(Delete(path).ok());
  EXPECT_FALSE(fs::exists(path)) << "to whoever removed it, it is gone at once";
  WaitFor([&] { return !fs::exists(Trash(path)); });
  EXPECT_FALSE(fs::exists(Trash(path)));
  EXPECT_EQ(disk_->calls(IoCall::kTruncate), 5U);
  EXPECT_EQ(disk_->calls(IoCall::kDelete), 1U);
}

TEST_F(GradualRemovalTest, WhereMuchIsWaitingTheStepsAreLarger) {
  const std::string path = Write("000001.log", kHuge);
  EXPECT_TRUE(Delete(path).ok());
  WaitFor([&] { return fs::file_size(Trash(path)) < kHuge; });
  EXPECT_LT(fs::file_size(Trash(path)), kHuge - 3 * kStep);
}

TEST_F(GradualRemovalTest, FileOfAnotherNameKeepsItsBytes) {
  const std::string path = Write("000001.sst", 5 * kStep);
  fs::create_hard_link(path, dir_.Sub("backup"));
  EXPECT_TRUE(Delete(path).ok());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(Trash(path)));
  files_.reset();
  EXPECT_EQ(fs::file_size(dir_.Sub("backup")), 5 * kStep);
}

TEST_F(GradualRemovalTest, FileOfAnotherDirectoryGoesAtOnce) {
  fs::create_directory(dir_.Sub("backup.tmp"));
  EXPECT_TRUE(Delete(Write("backup.tmp/000001.sst", 5 * kStep)).ok());
  EXPECT_TRUE(fs::is_empty(dir_.Sub("backup.tmp")));
  EXPECT_EQ(disk_->calls(IoCall::kRename), 0U);
}

TEST_F(GradualRemovalTest, WhatIsLeftGoesWithTheFileSystem) {
  EXPECT_TRUE(Delete(Write("a", kHuge)).ok());
  EXPECT_TRUE(Delete(Write("b", kHuge)).ok());
  files_.reset();
  EXPECT_TRUE(fs::is_empty(dir_.path()));
  EXPECT_LT(disk_->calls(IoCall::kTruncate), 3000U);
}

TEST_F(GradualRemovalTest, FileThatCannotBeShortenedOrRenamedGoesAtOnce) {
  for (const IoCall call : {IoCall::kTruncate, IoCall::kCreate, IoCall::kRename}) {
    const std::string path = Write("000001.log", 5 * kStep);
    disk_->FailCall(call, 0, IoFault::kEio);
    EXPECT_TRUE(Delete(path).ok());
    WaitFor([&] { return fs::is_empty(dir_.path()); });
    EXPECT_TRUE(fs::is_empty(dir_.path())) << IoCallName(call);
    EXPECT_EQ(disk_->calls(IoCall::kTruncate), 1U);
  }
}

TEST_F(GradualRemovalTest, LargeFileGoesAtOnceWhereThereIsNoThreadForIt) {
  {
    const test::NoThreads refused;
    EXPECT_TRUE(Delete(Write("000001.log", 5 * kStep)).ok());
    EXPECT_TRUE(fs::is_empty(dir_.path()));
    EXPECT_EQ(disk_->calls(IoCall::kTruncate), 0U);
  }
  EXPECT_TRUE(Delete(Write("000002.log", 5 * kStep)).ok());
  WaitFor([&] { return fs::is_empty(dir_.path()); });
  EXPECT_EQ(disk_->calls(IoCall::kTruncate), 4U);
}

TEST_F(GradualRemovalTest, FileThatIsNotThereIsTold) {
  EXPECT_FALSE(Delete(dir_.Sub("000001.log")).ok());
}

class StoreRemovalTest : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<JobStore>> Open(const std::string& name) {
    return OpenRocksJobStore({.path = dir_.Sub(name),
                              .env = env_.get(),
                              .wal_bytes_max = 16 * kStep,
                              .removal_step_bytes = kStep});
  }

  // So much that the log is switched, and flushed tables are merged, several times.
  static void Fill(JobStore* store, uint64_t first, uint64_t last) {
    for (uint64_t number = first; number <= last; ++number) {
      Batch batch;
      batch.Put(Table::kTimers,
                TimerKey(WallFromMillis(1), JobId{number}),
                std::string(kStep, static_cast<char>('a' + number % 26)));
      batch.Put(Table::kIndex, IndexKey(JobId{number}), "place");
      batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
      ASSERT_TRUE(store->Commit(batch).ok());
    }
  }

  static uint64_t Rows(const JobReader& reader) {
    uint64_t rows = 0;
    EXPECT_TRUE(reader
                    .Scan(Table::kTimers,
                          std::string(1, '\0'),
                          {},
                          [&](auto, std::string_view value) {
                            rows += value.size() == kStep ? 1U : 0U;
                            return true;
                          })
                    .ok());
    return rows;
  }

  test::TempDir dir_;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = test::NewFaultEnv(disk_);
};

TEST_F(StoreRemovalTest, OldLogsGoAPieceAtATimeAndBackupsKeepWhatTheyHave) {
  auto store = Open("data");
  ASSERT_TRUE(store.ok()) << store.status().message();
  Fill(store->get(), 1, 200);
  ASSERT_TRUE(BackUpRocksJobStore(store->get(), dir_.Sub("backup")).ok());
  Fill(store->get(), 201, 600);
  WaitFor([&] { return disk_->calls(IoCall::kTruncate) > 100; });
  EXPECT_GT(disk_->calls(IoCall::kTruncate), 100U);
  EXPECT_EQ(Rows(**store), 600U);
  ASSERT_TRUE((*store)->Close().ok());
  store->reset();
  for (const auto& file : fs::directory_iterator(dir_.Sub("data"))) {
    EXPECT_NE(file.path().extension(), kTrashEnding) << "left behind by a clean end";
  }
  const auto copy = Open("backup");
  ASSERT_TRUE(copy.ok()) << copy.status().message();
  EXPECT_EQ(Rows(**copy), 200U);
}

TEST_F(StoreRemovalTest, WhatAKillLeftIsRemovedByTheNextStart) {
  auto store = Open("data");
  ASSERT_TRUE(store.ok()) << store.status().message();
  Fill(store->get(), 1, 5);
  store->reset();
  const std::string trash = dir_.Sub("data") + "/000001.log" + std::string(kTrashEnding);
  std::ofstream(trash, std::ios::binary) << std::string(3 * kStep, 'x');
  store = Open("data");
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_FALSE(fs::exists(trash));
  EXPECT_EQ(Rows(**store), 5U);
}

}  // namespace
}  // namespace delayd::storage
