// A backup whose files are copied takes its time; meanwhile the store goes on as ever.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <rocksdb/version.h>

#include "storage/gradual_removal.h"
#include "tests/unit/storage/another_disk.h"
#include "tests/unit/storage/recovery_fixture.h"
#include "tests/unit/storage/small_disk.h"

namespace delayd::storage {
namespace {

class BackupElsewhereTest : public RecoveryTest {
 protected:
  static constexpr uint64_t kWalBytes = 65536;
  static constexpr uint64_t kStepBytes = 4096;  // a file of more loses its end step by step
  static constexpr size_t kPayloadBytes = 10'000;

  BackupElsewhereTest() {
    env_ = rocksdb::NewCompositeEnv(disk_);
    store_ = OpenRocksJobStore({.path = path(),
                                .env = env_.get(),
                                .wal_bytes_max = kWalBytes,
                                .removal_step_bytes = kStepBytes})
                 .value();
    Put(20, kPayloadBytes);
  }

  void Put(uint64_t jobs, size_t payload_bytes) {
    for (; jobs > 0; --jobs) {
      Batch batch;
      batch.Put(Table::kTimers, Key(++last_), std::string(payload_bytes, 'x'));
      batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, last_));
      ASSERT_TRUE(store_->Commit(batch).ok());
    }
  }

  // So much is written that it has to go; RocksDB removes it on a thread of its own.
  bool GoesMeanwhile(const std::string& file) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (fs::exists(file) && std::chrono::steady_clock::now() < deadline) {
      Put(1, kWalBytes / 64);
      std::this_thread::yield();
    }
    return !fs::exists(file);
  }

  Status BackUp(const GoOn& go_on) {
    return BackUpRocksJobStore(store_.get(), dir_.Sub("copy"), go_on);
  }

  bool IsSecondNameLeft() const {
    return std::ranges::any_of(fs::directory_iterator(path()), [](const auto& entry) {
      return entry.path().filename().string().starts_with("backup-");
    });
  }

  const std::shared_ptr<AnotherDisk> disk_ = std::make_shared<AnotherDisk>();
  std::unique_ptr<JobStore> store_;
  uint64_t last_ = 0;
};

// What is kept for the copy is what there was: else the disk fills up with all that is written.
TEST_F(BackupElsewhereTest, P1WhatTheStoreRemovesMeanwhileGoesAndIsInTheCopy) {
  bool opened = false;
  disk_->on_log_opened = [&] {
    if (!std::exchange(opened, true)) {
      Put(2, 20);  // behind the flush; zeroes ahead come with them, which the end of the log cuts
    }
  };
  bool asked = false;
  uint64_t before = 0;
  const Status status = BackUp([&] {
    if (!std::exchange(asked, true)) {
      before = last_;
      EXPECT_TRUE(GoesMeanwhile(Log()));
    }
    return true;
  });
  ASSERT_TRUE(status.ok()) << status.message();
  disk_->on_log_opened = nullptr;
  EXPECT_TRUE(asked);
  EXPECT_TRUE(opened || ROCKSDB_MAJOR > 7) << "newer ones name a log without a look at it";
  EXPECT_EQ(Jobs(*store_).size(), last_);
  store_.reset();  // which ends what goes step by step
  EXPECT_FALSE(IsSecondNameLeft());
  const auto copy = OpenRocksJobStore({.path = dir_.Sub("copy"), .env = env_.get()});
  ASSERT_TRUE(copy.ok()) << copy.status().message();
  EXPECT_GE(Jobs(**copy).size(), before);  // zeroes of the log were filled meanwhile
}

TEST_F(BackupElsewhereTest, OneThatIsStoppedLeavesNothingInTheStore) {
  EXPECT_EQ(BackUp([] { return false; }).reason(), "stopped");
  EXPECT_EQ(Jobs(*store_).size(), last_);
  store_.reset();
  EXPECT_FALSE(IsSecondNameLeft());
}

TEST_F(BackupElsewhereTest, WhereNoLinksCanBeMadeTheFilesStayUntilTheyAreCopied) {
  disk_->has_links = false;
  EXPECT_TRUE(BackUp([&] {
                Put(20, kPayloadBytes);
                EXPECT_FALSE(IsSecondNameLeft());
                return true;
              }).ok());
  EXPECT_GE(Jobs(**OpenRocksJobStore({.path = dir_.Sub("copy"), .env = env_.get()})).size(), 20U);
}

TEST_F(BackupElsewhereTest, WhatAKillLeavesTheNextStartRemoves) {
  const std::string table = [this] {
    EXPECT_TRUE(BackUp([] { return true; }).ok());  // it flushes
    for (const auto& entry : fs::directory_iterator(path())) {
      if (entry.path().extension() == ".sst") {
        return entry.path().string();
      }
    }
    return std::string();
  }();
  store_.reset();
  fs::create_hard_link(table, path() + "/backup-000009.sst" + std::string(kTrashEnding));
  store_ = Open().value();
  EXPECT_FALSE(IsSecondNameLeft());
  EXPECT_EQ(Jobs(*store_).size(), last_);
}

// One disk with a mount between the two directories, as a service has.
class MountedTwice final : public SmallDisk {
 public:
  MountedTwice() : SmallDisk(uint64_t{1} << 30) {}

  rocksdb::IOStatus LinkFile(const std::string& from,
                             const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
    return to.ends_with(kTrashEnding)
               ? target()->LinkFile(from, to, options, debug)
               : rocksdb::IOStatus::NotSupported("Invalid cross-device link");
  }
};

// The next commit would find no room, and end the store.
TEST_F(BackupElsewhereTest, P1ACopyOnTheStoresOwnDiskLeavesWhatTheStoreNeeds) {
  const auto disk = std::make_shared<MountedTwice>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  store_ = OpenRocksJobStore({.path = dir_.Sub("own"), .env = env.get()}).value();
  last_ = 0;
  Put(10, size_t{1} << 20);
  const auto fill = [&disk] {
    disk->free = uint64_t{60} << 20;
    return true;
  };
  const Status status = BackUp(fill);
  EXPECT_EQ(status.reason(), "disk_full");
  EXPECT_THAT(status.message(), ::testing::HasSubstr("back up to another disk"));
  EXPECT_FALSE(fs::exists(dir_.Sub("copy")));
  EXPECT_FALSE(fs::exists(dir_.Sub("copy.tmp")));
  disk->free = uint64_t{1} << 30;
  EXPECT_TRUE(BackUp([] { return true; }).ok());
  store_.reset();  // before its disk
}

}  // namespace
}  // namespace delayd::storage
