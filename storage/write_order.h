// storage/write_order.h — the operations of a batch by table and key. Private to the room.
//
// What:    operations on the same row keep their order; between rows none is promised by a batch.
// Threads: one.
// Cost:    O(n log n) comparisons, most of two numbers; one vector, kept for its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/batch.h"

namespace delayd::storage {

class WriteOrder {
 public:
  // Indexes into `batch`. Valid until the next call.
  std::span<const uint32_t> Of(const Batch& batch);

 private:
  struct Row {
    uint64_t head;  // the first bytes of the key, as they sort
    uint32_t index;
    Table table;
  };

  std::vector<Row> rows_;
  std::vector<uint32_t> order_;
};

}  // namespace delayd::storage
