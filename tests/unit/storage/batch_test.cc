#include "storage/batch.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/write_order.h"

namespace delayd::storage {
namespace {

TEST(BatchTest, KeepsItsOperationsInOrder) {
  Batch batch;
  EXPECT_TRUE(batch.empty());
  batch.Put(Table::kTimers, "key", "value");
  batch.Delete(Table::kIndex, "gone");
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch.bytes(), 12U);
  EXPECT_EQ(batch.op(0).table, Table::kTimers);
  EXPECT_FALSE(batch.op(0).is_delete);
  EXPECT_EQ(batch.op(0).key, "key");
  EXPECT_EQ(batch.op(0).value, "value");
  EXPECT_TRUE(batch.op(1).is_delete);
  EXPECT_EQ(batch.op(1).key, "gone");
  EXPECT_EQ(batch.op(1).value, "");
}

TEST(BatchTest, HoldsEmptyValuesAndAnyBytes) {
  Batch batch;
  batch.Put(Table::kByQueue, std::string_view("\0\xff", 2), "");
  EXPECT_EQ(batch.op(0).key, std::string_view("\0\xff", 2));
  EXPECT_EQ(batch.op(0).value, "");
}

TEST(BatchTest, TakesLargeValuesOverAsTheyAre) {
  std::string value(70000, 'x');
  const char* const bytes = value.data();
  Batch batch;
  batch.Put(Table::kIndex, "1", "before");
  batch.PutLarge(Table::kBig, "2", std::move(value));
  batch.PutLarge(Table::kBig, "3", "short");
  batch.Put(Table::kIndex, "4", "behind");
  EXPECT_EQ(batch.op(0).value, "before");
  EXPECT_EQ(batch.op(1).table, Table::kBig);
  EXPECT_FALSE(batch.op(1).is_delete);
  EXPECT_EQ(batch.op(1).key, "2");
  EXPECT_EQ(batch.op(1).value, std::string(70000, 'x'));
  EXPECT_EQ(batch.op(1).value.data(), bytes) << "it was copied";
  EXPECT_EQ(batch.op(2).value, "short");
  EXPECT_EQ(batch.op(3).key, "4");
  EXPECT_EQ(batch.op(3).value, "behind");
  EXPECT_EQ(batch.bytes(), 4U + 6 + 70000 + 5 + 6);
  EXPECT_EQ(batch.buffer_bytes(), 4U + 6 + 6);
}

TEST(WriteOrderTest, ByTableAndKeyAndTheSameRowAsItWas) {
  Batch batch;
  batch.Put(Table::kTimers, "b", "1");
  batch.Put(Table::kMeta, "z", "2");
  batch.Put(Table::kTimers, "a-long-key-2", "3");
  batch.Put(Table::kTimers, "a-long-key-1", "4");
  batch.Delete(Table::kTimers, "b");
  batch.Put(Table::kTimers, "a", "5");
  batch.Put(Table::kTimers, "b", "6");
  WriteOrder order;
  std::vector<uint32_t> indexes;
  for (const WriteOrder::Row& row : order.Of(batch)) {
    indexes.push_back(row.index);
  }
  EXPECT_THAT(indexes, ::testing::ElementsAre(1, 5, 3, 2, 0, 4, 6));
}

}  // namespace
}  // namespace delayd::storage
