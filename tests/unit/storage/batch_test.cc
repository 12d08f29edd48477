#include "storage/batch.h"

#include <gtest/gtest.h>

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

TEST(BatchTest, AppendedOperationsStandBehindItsOwn) {
  Batch first;
  first.Put(Table::kTimers, "a", "1");
  Batch second;
  second.Put(Table::kBig, "b", "2");
  second.Delete(Table::kKeys, "c");
  first.Append(second);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first.op(0).key, "a");
  EXPECT_EQ(first.op(1).table, Table::kBig);
  EXPECT_EQ(first.op(1).value, "2");
  EXPECT_EQ(first.op(2).key, "c");
  EXPECT_TRUE(first.op(2).is_delete);
}

TEST(BatchTest, HoldsEmptyValuesAndAnyBytes) {
  Batch batch;
  batch.Put(Table::kByQueue, std::string_view("\0\xff", 2), "");
  EXPECT_EQ(batch.op(0).key, std::string_view("\0\xff", 2));
  EXPECT_EQ(batch.op(0).value, "");
}

}  // namespace
}  // namespace delayd::storage
