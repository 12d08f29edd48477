// storage/write_order.h — the operations of a batch by table and key. Private to the room.
//
// What:    operations on the same row keep their order; between rows none is promised by a batch.
// Threads: one.
// Cost:    O(n log n) comparisons, most of a few numbers; one vector, kept for its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/batch.h"
#include "storage/key_head.h"

namespace delayd::storage {

class WriteOrder {
 public:
  struct Row {
    KeyHead head;
    uint32_t index = 0;  // in the batch
    Table table = Table::kMeta;
  };

  // Valid until the next call.
  std::span<const Row> Of(const Batch& batch);

 private:
  std::vector<Row> rows_;
};

}  // namespace delayd::storage
