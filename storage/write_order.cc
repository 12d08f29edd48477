#include "storage/write_order.h"

#include <algorithm>
#include <string_view>

namespace delayd::storage {
namespace {

constexpr size_t kHeadBytes = sizeof(uint64_t);

uint64_t Head(std::string_view key) {
  uint64_t head = 0;
  for (size_t i = 0; i < kHeadBytes; ++i) {
    head = head << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0U);
  }
  return head;
}

}  // namespace

std::span<const uint32_t> WriteOrder::Of(const Batch& batch) {
  rows_.clear();
  for (uint32_t i = 0; i < batch.size(); ++i) {
    const Batch::Op op = batch.op(i);
    rows_.push_back({.head = Head(op.key), .index = i, .table = op.table});
  }
  std::ranges::sort(rows_, [&batch](const Row& a, const Row& b) {
    if (a.table != b.table) {
      return a.table < b.table;
    }
    if (a.head != b.head) {
      return a.head < b.head;
    }
    const int order = batch.op(a.index).key.compare(batch.op(b.index).key);
    return order != 0 ? order < 0 : a.index < b.index;
  });
  order_.clear();
  for (const Row& row : rows_) {
    order_.push_back(row.index);
  }
  return order_;
}

}  // namespace delayd::storage
