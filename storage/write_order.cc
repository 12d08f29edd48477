#include "storage/write_order.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace delayd::storage {
namespace {

// Also false if two rows have the same head.
bool IsSorted(std::span<const WriteOrder::Row> rows) {
  const auto out_of_order = [](const WriteOrder::Row& a, const WriteOrder::Row& b) {
    return a.head >= b.head;
  };
  return std::ranges::adjacent_find(rows, out_of_order) == rows.end();
}

}  // namespace

// Sorted table by table: one of them, that of the ids, mostly comes in order.
std::span<const WriteOrder::Row> WriteOrder::Of(const Batch& batch) {
  std::array<size_t, kTableCount + 1> begins{};
  for (size_t i = 0; i < batch.size(); ++i) {
    ++begins[static_cast<size_t>(batch.op(i).table) + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  rows_.resize(batch.size());
  std::array<size_t, kTableCount + 1> ends = begins;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Batch::Op op = batch.op(i);
    rows_[ends[static_cast<size_t>(op.table)]++] = {.head = HeadOf(HeadKindOf(op.table), op.key),
                                                    .index = static_cast<uint32_t>(i),
                                                    .table = op.table};
  }
  for (size_t table = 0; table < kTableCount; ++table) {
    const std::span<Row> rows(rows_.begin() + static_cast<std::ptrdiff_t>(begins[table]),
                              begins[table + 1] - begins[table]);
    if (IsSorted(rows)) {
      continue;
    }
    std::ranges::sort(rows, [&batch](const Row& a, const Row& b) {
      if (a.head != b.head) {
        return a.head < b.head;
      }
      const int order = batch.op(a.index).key.compare(batch.op(b.index).key);
      return order != 0 ? order < 0 : a.index < b.index;
    });
  }
  return rows_;
}

}  // namespace delayd::storage
