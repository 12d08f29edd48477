// The bytes that a batch has in RocksDB's log, against those that the linked RocksDB makes.
#include "storage/batch_rep.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <gtest/gtest.h>
#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

namespace delayd::storage {
namespace {

// All that a WriteBatch asks of a family.
class FamilyOfId final : public rocksdb::ColumnFamilyHandle {
 public:
  explicit FamilyOfId(uint32_t id) : id_(id) {}

  const std::string& GetName() const override { return name_; }

  uint32_t GetID() const override { return id_; }

  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor* /*descriptor*/) override {
    return rocksdb::Status::NotSupported();
  }

  const rocksdb::Comparator* GetComparator() const override {
    return rocksdb::BytewiseComparator();
  }

 private:
  std::string name_;
  uint32_t id_;
};

constexpr FamilyIds kIds = {0, 1, 2, 127, 128, 5, 16384, 7, 0x7fffffff};

std::string RepByRocks(const Batch& batch, std::span<const WriteOrder::Row> rows) {
  rocksdb::WriteBatch by_rocks;
  for (const WriteOrder::Row& row : rows) {
    const Batch::Op op = batch.op(row.index);
    FamilyOfId family(kIds[static_cast<size_t>(op.table)]);
    const rocksdb::Slice key(op.key.data(), op.key.size());
    const rocksdb::Slice value(op.value.data(), op.value.size());
    const rocksdb::Status added =
        op.is_delete ? by_rocks.Delete(&family, key) : by_rocks.Put(&family, key, value);
    EXPECT_TRUE(added.ok()) << added.ToString();
  }
  return by_rocks.Data();
}

TEST(BatchRep, IsTheOneThatRocksDbMakes) {
  // Around the sizes at which a varint grows.
  constexpr std::array<size_t, 8> kSizes = {1, 2, 127, 128, 255, 16383, 16384, 70000};
  Batch batch;
  for (size_t table = 0; table < kTableCount; ++table) {
    for (const size_t size : kSizes) {
      const std::string key = std::to_string(table) + std::string(size, 'k');
      batch.Put(static_cast<Table>(table), key, std::string(size, 'v'));
      batch.Put(static_cast<Table>(table), key + "2", "");
      batch.Delete(static_cast<Table>(table), key + "3");
    }
  }
  WriteOrder order;
  const std::span<const WriteOrder::Row> rows = order.Of(batch);
  EXPECT_EQ(RepOf(batch, rows, kIds), RepByRocks(batch, rows));
}

TEST(BatchRep, OfABatchOfOneRow) {
  Batch batch;
  batch.Put(Table::kMeta, "key", "value");
  WriteOrder order;
  const std::span<const WriteOrder::Row> rows = order.Of(batch);
  EXPECT_EQ(RepOf(batch, rows, kIds), RepByRocks(batch, rows));
}

}  // namespace
}  // namespace delayd::storage
