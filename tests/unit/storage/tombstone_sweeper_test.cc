#include "storage/tombstone_sweeper.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/table_properties.h>

#include "base/coding.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_options.h"
#include "storage/rocks_store.h"
#include "tests/support/no_threads.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/count_rows.h"

namespace delayd::storage {
namespace {

// Three timers at each end and `count` between, which are deleted again.
class SweepTest : public ::testing::Test {
 protected:
  void Open() {
    auto store = OpenRocksJobStore({.path = dir_.Sub("data"), .sweep_deletes_min = kDeletes / 2});
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
  }

  std::string Key(uint64_t id) { return TimerKey(WallFromMillis(1000), JobId{id}); }

  void Commit(uint64_t from, uint64_t to, bool is_delete, uint64_t mark) {
    Batch batch;
    for (uint64_t id = from; id < to; ++id) {
      if (is_delete) {
        batch.Delete(Table::kTimers, Key(id));
      } else {
        batch.Put(Table::kTimers, Key(id), "row");
      }
    }
    batch.Put(Table::kMeta, kLowWaterMarkKey, EncodeNumber(kLowWaterMarkKey, mark));
    ASSERT_TRUE(store_->Commit(batch).ok());
  }

  // RocksDB's own count of deletions in table files; its memtables are flushed by the close.
  uint64_t DeletionsOnDisk(Table table = Table::kTimers) {
    EXPECT_TRUE(store_->Close().ok());
    rocksdb::DB* db = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    EXPECT_TRUE(rocksdb::DB::OpenForReadOnly(
                    MakeDbOptions({}), dir_.Sub("data"), MakeColumnFamilies({}), &families, &db)
                    .ok());
    uint64_t deletions = 0;
    rocksdb::TablePropertiesCollection properties;
    EXPECT_TRUE(
        db->GetPropertiesOfAllTables(families[static_cast<size_t>(table)], &properties).ok());
    for (const auto& [file, of] : properties) {
      deletions += of->num_deletions;
    }
    properties.clear();
    for (auto* family : families) {
      EXPECT_TRUE(db->DestroyColumnFamilyHandle(family).ok());
    }
    delete db;
    return deletions;
  }

  static constexpr uint64_t kDeletes = 4000;
  delayd::test::TempDir dir_;
  std::unique_ptr<JobStore> store_;
};

uint64_t Head(int64_t due) {
  return ByteReader(TimerKey(WallFromMillis(due), JobId{0})).U64();
}

TEST(DeletedRowsTest, CountsWhatLiesBetweenTheFirstAndTheLast) {
  DeletedRows deletes(0);
  for (const int64_t due : {5, 3, 9, 4}) {
    deletes.Add(TimerKey(WallFromMillis(due), JobId{7}));
  }
  EXPECT_EQ(deletes.count(), 4U);
  EXPECT_EQ(deletes.first(), TimerKey(WallFromMillis(3), JobId{7}));
  EXPECT_EQ(deletes.last(), TimerKey(WallFromMillis(9), JobId{7}));
}

// Workers ack in about the order of the due times: the mark follows a few jobs behind.
TEST(DeletedRowsTest, WhatTheMarkHasPassedCountsNoMore) {
  DeletedRows deletes(0);
  for (int64_t due = 0; due < 100'000; ++due) {
    deletes.Add(TimerKey(WallFromMillis(due), JobId{1}));
    if (due % 1000 == 999) {
      deletes.Forget(Head(due - 100));
      EXPECT_LE(deletes.count(), 120U) << "at " << due;
    }
  }
  EXPECT_GE(deletes.first().substr(0, 8),
            TimerKey(WallFromMillis(99'899), JobId{0}).view().substr(0, 8));
  EXPECT_EQ(deletes.last(), TimerKey(WallFromMillis(99'999), JobId{1}));
  deletes.Forget(Head(100'000));
  EXPECT_EQ(deletes.count(), 0U);
  deletes.Add(TimerKey(WallFromMillis(3), JobId{1}));
  EXPECT_EQ(deletes.first(), deletes.last());
}

TEST(DeletedRowsTest, PartsAreAboutEqualAndGoOneByOne) {
  DeletedRows deletes(std::nullopt);
  for (int64_t due = 0; due < 10'000; ++due) {
    deletes.Add(TimerKey(WallFromMillis(due * 7919 % 10'000), JobId{1}));
  }
  const std::vector<DeletedRows::Part> parts = deletes.Parts();
  ASSERT_GT(parts.size(), 2U);
  EXPECT_EQ(parts.front().first, deletes.first());
  EXPECT_EQ(parts.back().last, deletes.last());
  for (size_t i = 1; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].first, parts[i - 1].last);
    EXPECT_NEAR(static_cast<double>(parts[i].count), static_cast<double>(parts[0].count), 16);
  }
  DeletedRows others(std::nullopt);
  others.Add(TimerKey(WallFromMillis(20'000), JobId{1}));
  for (const DeletedRows::Part& part : parts) {
    deletes.Forget(part);
  }
  EXPECT_EQ(deletes.count(), 0U);
  deletes.Add(others);
  EXPECT_EQ(deletes.count(), 1U);
  EXPECT_EQ(deletes.first(), others.first());
}

TEST(DeletedRowsTest, OfManyFewerAreRemembered) {
  DeletedRows many(0);
  for (int64_t due = 0; due < 2'000'000; ++due) {
    many.Add(TimerKey(WallFromMillis(due), JobId{1}));
  }
  DeletedRows few(0);
  for (int64_t due = 2'000'000; due < 2'100'000; ++due) {
    few.Add(TimerKey(WallFromMillis(due), JobId{1}));
  }
  few.Add(std::move(many));
  EXPECT_EQ(few.count(), 2'100'000U);
  EXPECT_LE(few.sampled(), 20'000U);
  uint64_t sum = 0;
  for (const DeletedRows::Part& part : few.Parts()) {
    sum += part.count;
  }
  EXPECT_NEAR(static_cast<double>(sum), 2'100'000, 10'000);
  few.Forget(Head(2'050'000));
  EXPECT_NEAR(static_cast<double>(few.count()), 50'000, 1'000);
  few.Forget(Head(2'100'000));
  EXPECT_EQ(few.count(), 0U);
}

TEST_F(SweepTest, WhatAMassCancelLeavesIsTakenAway) {
  Open();
  Commit(0, kDeletes + 6, false, 1);
  Commit(3, kDeletes + 3, true, 1);
  while (AsRocks(*store_).sweeps_done() == 0) {  // it runs in the background
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), 6U);
  EXPECT_EQ(DeletionsOnDisk(), 0U);
}

TEST_F(SweepTest, WhatIsLeftIsTakenAwayWhenNoMoreComes) {
  Open();
  Commit(0, kDeletes / 4 + 6, false, 1);
  Commit(3, kDeletes / 4 + 3, true, 1);
  while (AsRocks(*store_).sweeps_done() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), 6U);
  EXPECT_EQ(DeletionsOnDisk(), 0U);
}

// The cancelled jobs of one queue, say, among ten times as many of others.
TEST_F(SweepTest, WhatLiesTogetherIsTakenAwayHoweverManyRowsLieElsewhere) {
  Open();
  Commit(0, 11 * kDeletes, false, 1);
  Commit(3, kDeletes + 3, true, 1);
  while (AsRocks(*store_).sweeps_done() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), 10 * kDeletes);
  EXPECT_EQ(DeletionsOnDisk(), 0U);
}

TEST_F(SweepTest, DeadJobsThatAreGoneAreTakenAwayToo) {
  Open();
  for (const bool is_delete : {false, true}) {
    Batch batch;
    for (uint64_t id = is_delete ? 1 : 0; id < kDeletes; ++id) {
      const auto key = DeadKey(QueueId{1}, WallFromMillis(1000), JobId{id});
      if (is_delete) {
        batch.Delete(Table::kDead, key);
      } else {
        batch.Put(Table::kDead, key, "row");
      }
    }
    ASSERT_TRUE(store_->Commit(batch).ok());
  }
  while (AsRocks(*store_).sweeps_done() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(DeletionsOnDisk(Table::kDead), 0U);
}

TEST_F(SweepTest, WhatIsLeftWithoutAThreadIsTakenAwayWhenThereIsOne) {
  Open();
  Commit(0, kDeletes + 6, false, 1);
  {
    const test::NoThreads refused;
    Commit(3, kDeletes / 2, true, 1);
  }
  Commit(kDeletes / 2, kDeletes + 3, true, 1);
  while (AsRocks(*store_).sweeps_done() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), 6U);
  EXPECT_EQ(DeletionsOnDisk(), 0U);
}

TEST_F(SweepTest, AcksBelowTheMarkAreLeftToRocksDb) {
  Open();
  Commit(0, kDeletes, false, 1);
  Commit(0, kDeletes, true, 2000);
  EXPECT_EQ(AsRocks(*store_).sweeps_done(), 0U);
  EXPECT_EQ(CountRows(*store_), 0U);
}

// Two sweeps at once take the processors from commits; without the turn two looks soon meet.
TEST_F(SweepTest, ThoseThatShareATurnGoOneAfterTheOther) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, dir_.Sub("data"), &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (uint64_t id = 0; id < 10'000; ++id) {  // many living ones, so that each look estimates
    ASSERT_TRUE(db->Put({}, rocksdb::Slice(Key(id)), "row").ok());
  }
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::array<std::atomic<int>, kTableCount> looks = {};
  const auto estimate = [&](Table table, std::span<const KeyRange> ranges) {
    most = std::max<int>(most, ++inside);
    for (int i = 0; i < 1000; ++i) {
      std::this_thread::yield();
    }
    --inside;
    ++looks[static_cast<size_t>(table)];
    return StatusOr<std::vector<uint64_t>>(std::vector<uint64_t>(ranges.size(), 1'000'000));
  };
  std::mutex turn;
  const auto make = [&](Table table) {
    return std::make_unique<TombstoneSweeper>(
        db.get(), db->DefaultColumnFamily(), table, 1, nullptr, &turn, estimate);
  };
  const auto timers = make(Table::kTimers);
  const auto dead = make(Table::kDead);
  for (int look = 1; look < 12; ++look) {
    Batch batch;
    for (uint64_t id = 0; id < 40U << look / 4; ++id) {  // so many more that they look again
      batch.Delete(Table::kTimers, Key(id));
      batch.Delete(Table::kDead, DeadKey(QueueId{1}, WallFromMillis(1000), JobId{id}));
    }
    timers->NoteBatch(batch);
    dead->NoteBatch(batch);
    while (looks[static_cast<size_t>(Table::kTimers)] < look ||
           looks[static_cast<size_t>(Table::kDead)] < look) {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(most, 1);
}

TEST_F(SweepTest, ACloseDoesNotWaitForASweepAndLosesNothing) {
  Open();
  Commit(0, kDeletes + 6, false, 1);
  Commit(3, kDeletes + 3, true, 1);
  ASSERT_TRUE(store_->Close().ok());
  Open();
  EXPECT_EQ(CountRows(*store_), 6U);
}

}  // namespace
}  // namespace delayd::storage
