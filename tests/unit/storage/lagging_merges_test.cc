// Where writes wait for merges, whoever only wants what is in memory on disk does not.
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_figures.h"
#include "storage/rocks_store.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/count_rows.h"
#include "tests/unit/storage/no_merges.h"

namespace delayd::storage {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kFilesThatSlowWrites = 20;
constexpr uint64_t kRestBytes = 65536;
constexpr uint64_t kSweepDeletes = 100;
constexpr milliseconds kLongRest = std::chrono::hours(1);

class LaggingMergesTest : public ::testing::Test {
 protected:
  LaggingMergesTest() {
    Open("data");
    no_merges_.emplace();
  }

  void Open(const std::string& name, milliseconds rest_period = kLongRest) {
    store_.reset();
    auto store = OpenRocksJobStore({.path = dir_.Sub(name),
                                    .sweep_deletes_min = kSweepDeletes,
                                    .rest_bytes_min = kRestBytes,
                                    .rest_period = rest_period});
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
  }

  void Commit(size_t bytes = 20) {
    Batch batch;
    batch.Put(Table::kTimers, TimerKey(WallFromMillis(1), JobId{++rows_}), std::string(bytes, 'x'));
    batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, rows_));
    ASSERT_TRUE(store_->Commit(batch).ok());
  }

  Status BackUp(const std::string& name) {
    return BackUpRocksJobStore(store_.get(), dir_.Sub(name));
  }

  uint64_t FilesAtLevel0() const {
    return ReadRocksFigures(*store_).tables[static_cast<size_t>(Table::kTimers)].files[0];
  }

  void DeleteManyRows() {
    Batch batch;
    for (uint64_t id = 0; id < kSweepDeletes; ++id) {
      batch.Delete(Table::kTimers, TimerKey(WallFromMillis(2), JobId{id}));
    }
    ASSERT_TRUE(store_->Commit(batch).ok());
  }

  void FillLevel0(uint64_t files = kFilesThatSlowWrites) {
    while (FilesAtLevel0() < files) {
      Commit();
      ASSERT_TRUE(BackUp("filler").ok());
      std::filesystem::remove_all(dir_.Sub("filler"));
    }
  }

  test::TempDir dir_;
  std::unique_ptr<JobStore> store_;
  std::optional<NoMerges> no_merges_;
  uint64_t rows_ = 0;
};

TEST_F(LaggingMergesTest, P9ACloseWritesWhatIsInMemoryAndWaitsForNoMerge) {
  FillLevel0();
  Commit();
  ASSERT_TRUE(store_->Close().ok());
  Open("data");
  EXPECT_EQ(FilesAtLevel0(), kFilesThatSlowWrites + 1);
  EXPECT_EQ(CountRows(*store_), rows_);
}

// One file more could stop the writes that are only slow yet.
TEST_F(LaggingMergesTest, P1ABackupTakesTheLogsInsteadOfAFlush) {
  FillLevel0();
  Commit();
  ASSERT_TRUE(BackUp("backup").ok());
  EXPECT_EQ(FilesAtLevel0(), kFilesThatSlowWrites);
  Open("backup");
  EXPECT_EQ(CountRows(*store_), rows_);
}

TEST_F(LaggingMergesTest, AStoreThatRestsFlushesWhenMergesHaveMadeRoom) {
  Open("resting", milliseconds(4));
  FillLevel0();
  Commit(2 * kRestBytes);
  while (AsRocks(*store_).rests() < 2) {  // it is a thread of its own
    std::this_thread::yield();
  }
  EXPECT_EQ(FilesAtLevel0(), kFilesThatSlowWrites);
  no_merges_.reset();
  while (ReadRocksFigures(*store_).wal_bytes >= kRestBytes) {
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), rows_);
}

// It begins with a flush.
TEST_F(LaggingMergesTest, ASweepIsPutOffWhereOneMoreFileWouldStallWritesForLonger) {
  FillLevel0();
  DeleteManyRows();
  while (AsRocks(*store_).sweeps_done() == 0) {  // it has a thread of its own
    std::this_thread::yield();
  }
  EXPECT_EQ(FilesAtLevel0(), kFilesThatSlowWrites);
  ASSERT_TRUE(store_->Close().ok());
}

TEST_F(LaggingMergesTest, ACloseDoesNotWaitForASweepThatHasBegun) {
  FillLevel0(kFilesThatSlowWrites - 1);
  DeleteManyRows();
  while (FilesAtLevel0() < kFilesThatSlowWrites) {  // its flush waits for no merge
    std::this_thread::yield();
  }
  ASSERT_TRUE(store_->Close().ok());
}

}  // namespace
}  // namespace delayd::storage
