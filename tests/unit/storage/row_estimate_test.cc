// Rows counted without a look at them, against those that are there.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/table_properties.h>

#include "storage/keys.h"
#include "storage/rocks_job_store.h"
#include "storage/row_marks.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

constexpr QueueId kQueue{7};

std::string RowKey(uint64_t n) {
  return ByQueueKey(kQueue, WallTime(Millis(static_cast<int64_t>(1000 + n))), JobId{n + 1});
}

KeyRange Range(uint64_t from, uint64_t to) {
  return {RowKey(from), RowKey(to)};
}

class RowEstimateTest : public ::testing::Test {
 protected:
  RowEstimateTest() { Reopen(); }

  // What was in memory is in files then.
  void Reopen() {
    if (store_ != nullptr) {
      EXPECT_TRUE(store_->Close().ok());
      store_.reset();
    }
    auto store = OpenRocksJobStore({.path = dir_.Sub("data")});
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(*store);
  }

  template <typename Change>
  void Commit(const Change& change) {
    Batch batch;
    change(&batch);
    ASSERT_TRUE(store_->Commit(batch).ok());
  }

  void Put(uint64_t from, uint64_t to, uint64_t step = 1) {
    Commit([&](Batch* batch) {
      for (uint64_t n = from; n < to; n += step) {
        batch->Put(Table::kByQueue, RowKey(n), "");
      }
    });
  }

  void Delete(uint64_t from, uint64_t to, uint64_t step = 1) {
    Commit([&](Batch* batch) {
      for (uint64_t n = from; n < to; n += step) {
        batch->Delete(Table::kByQueue, RowKey(n));
      }
    });
  }

  int64_t Estimate(uint64_t from, uint64_t to) const {
    const std::vector<KeyRange> ranges = {Range(from, to)};
    const auto rows = store_->EstimateRows(Table::kByQueue, ranges);
    EXPECT_TRUE(rows.ok()) << rows.status().message();
    return static_cast<int64_t>(rows->at(0));
  }

  test::TempDir dir_;
  std::unique_ptr<JobStore> store_;
};

TEST_F(RowEstimateTest, FewRowsInMemoryAreCounted) {
  Put(0, 100);
  EXPECT_EQ(Estimate(0, 100), 100);
  EXPECT_EQ(Estimate(10, 30), 20);
  EXPECT_EQ(Estimate(100, 1000), 0);
  Delete(20, 25);
  EXPECT_EQ(Estimate(10, 30), 20 - 5);
}

TEST_F(RowEstimateTest, ManyRowsInMemoryToATenthOfTheEntries) {
  Put(0, 100'000);
  Delete(0, 50'000, 2);
  EXPECT_NEAR(static_cast<double>(Estimate(0, 100'000)), 75'000, 15'000);
  EXPECT_NEAR(static_cast<double>(Estimate(50'000, 60'000)), 10'000, 1'000);
  EXPECT_NEAR(static_cast<double>(Estimate(20'000, 40'000)), 10'000, 3'000);
}

TEST_F(RowEstimateTest, RowsInFilesToAMark) {
  Put(0, 50'000);
  Put(90'000, 90'010);
  Reopen();
  EXPECT_EQ(Estimate(0, 100'000), 50'010);
  for (uint64_t from = 0; from < 50'000; from += 3'333) {
    EXPECT_NEAR(static_cast<double>(Estimate(from, from + 1'000)),
                std::min<double>(1'000, 50'000.0 - static_cast<double>(from)),
                kEntriesPerMark);
  }
  EXPECT_LE(Estimate(60'000, 80'000), static_cast<int64_t>(kEntriesPerMark));
}

// A user who cancels all jobs and looks again sees none, long before files are merged.
TEST_F(RowEstimateTest, DeletesInMemoryTakeRowsOfFilesAway) {
  Put(0, 1'000);
  Reopen();
  Delete(0, 1'000);
  EXPECT_NEAR(static_cast<double>(Estimate(0, 1'000)), 0, 1'000.0 / 5);
  Reopen();
  EXPECT_NEAR(static_cast<double>(Estimate(0, 1'000)), 0, kEntriesPerMark);
}

TEST_F(RowEstimateTest, AClosedStoreSaysSo) {
  ASSERT_TRUE(store_->Close().ok());
  const std::vector<KeyRange> ranges = {Range(0, 1)};
  EXPECT_EQ(store_->EstimateRows(Table::kByQueue, ranges).status().reason(), "store_closed");
}

rocksdb::TableProperties PropertiesOf(int entries, int deletions) {
  const std::unique_ptr<rocksdb::TablePropertiesCollector> collector(
      NewRowMarks()->CreateTablePropertiesCollector({}));
  rocksdb::TableProperties properties;
  properties.num_entries = static_cast<uint64_t>(entries);
  properties.num_deletions = static_cast<uint64_t>(deletions);
  for (int n = 0; n < entries; ++n) {
    const auto type = n < deletions ? rocksdb::kEntryDelete : rocksdb::kEntryPut;
    EXPECT_TRUE(collector->AddUserKey(RowKey(static_cast<uint64_t>(n)), "", type, 0, 0).ok());
  }
  EXPECT_TRUE(collector->Finish(&properties.user_collected_properties).ok());
  return properties;
}

TEST(RowMarksTest, AMarkIsExactAndBetweenTwoIsTheirMiddle) {
  const auto properties = PropertiesOf(1'000, 0);
  const RowMarks marks(properties, RowKey(0), RowKey(999));
  EXPECT_EQ(marks.Before(RowKey(0)), 0);
  EXPECT_EQ(marks.Before(ByQueueKey(QueueId{6}, WallTime(), JobId{1})), 0);
  EXPECT_EQ(marks.Before(RowKey(1)), 64);
  EXPECT_EQ(marks.Before(RowKey(129)), 128 + 64);
  EXPECT_EQ(marks.Before(RowKey(1'000)), 1'000);
  EXPECT_EQ(marks.Before(ByQueueKey(QueueId{8}, WallTime(), JobId{1})), 1'000);
}

TEST(RowMarksTest, DeletesCountBelowNothing) {
  const auto properties = PropertiesOf(1'000, 600);
  const RowMarks marks(properties, RowKey(0), RowKey(999));
  EXPECT_NEAR(static_cast<double>(marks.Before(RowKey(600))), -600, 128);
  EXPECT_EQ(marks.Before(RowKey(1'000)), 400 - 600);
}

TEST(RowMarksTest, AFileOfAnEarlierVersionHasMarksAtItsEnds) {
  for (const std::string broken : {"", "\x14", "\x14half a mark"}) {
    auto properties = PropertiesOf(1'000, 100);
    auto& collected = properties.user_collected_properties;
    if (broken.empty()) {
      collected.clear();
    } else {
      collected.begin()->second = broken;
    }
    const RowMarks marks(properties, RowKey(0), RowKey(999));
    EXPECT_EQ(marks.Before(RowKey(0)), 0);
    EXPECT_EQ(marks.Before(RowKey(1)), 400);
    EXPECT_EQ(marks.Before(RowKey(1'000)), 800);
  }
}

}  // namespace
}  // namespace delayd::storage
