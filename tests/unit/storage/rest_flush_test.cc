#include "storage/rest_flush.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "storage/free_memory.h"
#include "storage/keys.h"
#include "storage/rocks_figures.h"
#include "storage/rocks_store.h"
#include "tests/support/no_threads.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/count_rows.h"
#include "tests/unit/storage/small_disk.h"

namespace delayd::storage {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kBytesMin = 65536;
constexpr milliseconds kSoon{4};
constexpr milliseconds kNever = std::chrono::hours(1);

class RestFlushTest : public ::testing::Test {
 protected:
  void Open(milliseconds period, rocksdb::Env* env = nullptr) {
    auto store = OpenRocksJobStore(
        {.path = dir_.Sub("data"), .env = env, .rest_bytes_min = kBytesMin, .rest_period = period});
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
  }

  void Commit(uint64_t bytes) {
    constexpr uint64_t kRow = 1024;
    Batch batch;
    for (uint64_t sum = 0; sum < bytes; sum += kRow) {
      batch.Put(
          Table::kTimers, TimerKey(WallFromMillis(1000), JobId{++rows_}), std::string(kRow, 'x'));
    }
    ASSERT_TRUE(store_->Commit(batch).ok());
  }

  void AwaitRests(uint64_t count) {
    while (AsRocks(*store_).rests() < count) {  // it is a thread of its own
      std::this_thread::yield();
    }
  }

  // RocksDB lets go of the log on a thread of its own, a moment after it has told of the flush.
  void AwaitShortLog() {
    while (ReadRocksFigures(*store_).wal_bytes >= kBytesMin) {
      std::this_thread::yield();
    }
  }

  uint64_t BytesInMemory() {
    const auto tables = ReadRocksFigures(*store_).tables;
    return std::accumulate(
        tables.begin(), tables.end(), uint64_t{0}, [](uint64_t sum, const TableFigures& table) {
          return sum + table.memtable_bytes;
        });
  }

  test::TempDir dir_;
  std::unique_ptr<JobStore> store_;
  uint64_t rows_ = 0;
};

TEST_F(RestFlushTest, P10AStoreThatRestsKeepsLittleInMemoryAndLittleToReplay) {
  Open(kSoon);
  for (uint64_t rest = 1; rest <= 3; ++rest) {
    Commit(2 * kBytesMin);
    AwaitRests(rest);
    EXPECT_LT(BytesInMemory(), kBytesMin);
    AwaitShortLog();
  }
  EXPECT_EQ(CountRows(*store_), rows_);
  store_.reset();  // without a close, as after a kill
  Open(kNever);
  EXPECT_EQ(CountRows(*store_), rows_);
}

TEST_F(RestFlushTest, LittleStaysWhereItIs) {
  Open(kSoon);
  Commit(kBytesMin / 2);
  EXPECT_GT(BytesInMemory(), kBytesMin / 2);
  EXPECT_EQ(AsRocks(*store_).rests(), 0U);  // nothing has been begun that could come later
}

TEST_F(RestFlushTest, AFlushIsNotTriedWithoutRoomForIt) {
  const std::unique_ptr<rocksdb::Env> env =
      rocksdb::NewCompositeEnv(std::make_shared<SmallDisk>(uint64_t{1} << 20));
  Open(kSoon, env.get());
  Commit(2 * kBytesMin);
  AwaitRests(1);
  EXPECT_GT(BytesInMemory(), 2 * kBytesMin);
  Commit(kBytesMin);  // it is asked again
  AwaitRests(2);
  EXPECT_EQ(CountRows(*store_), rows_);
  ASSERT_TRUE(store_->Close().ok());
  store_.reset();
}

TEST_F(RestFlushTest, AStoreThatGetsNoThreadGoesOnAndRestsWhenThereIsOne) {
  static std::atomic<int> told = 0;
  OnThreadRefused([](const std::string& /*why*/) { ++told; });
  Open(kSoon);
  {
    const test::NoThreads refused;
    Commit(2 * kBytesMin);
    Commit(2 * kBytesMin);
  }
  EXPECT_EQ(told, 1);
  Commit(kBytesMin);
  AwaitRests(1);
  EXPECT_LT(BytesInMemory(), kBytesMin);
  EXPECT_EQ(CountRows(*store_), rows_);
}

TEST_F(RestFlushTest, ACloseDoesNotWaitForARest) {
  Open(kNever);
  Commit(2 * kBytesMin);
  ASSERT_TRUE(store_->Close().ok());
  Open(kNever);
  EXPECT_EQ(CountRows(*store_), rows_);
}

// Its own allocator stands before the system's, and keeps what is freed.
#if !defined(DELAYD_SANITIZED)
uint64_t ResidentPages() {
  uint64_t all = 0;
  uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

TEST(FreeMemory, GoesBackToTheSystem) {
  constexpr size_t kPieces = 1024;
  constexpr size_t kBytes = 65536;
  std::vector<std::string> pieces;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces.emplace_back(kBytes, 'x');
  }
  const uint64_t before = ResidentPages();
  pieces.clear();
  GiveBackFreeMemory();
  EXPECT_LT(ResidentPages() + kPieces * kBytes / 4096 * 3 / 4, before);
}
#endif

}  // namespace
}  // namespace delayd::storage
