// storage/write_order.h — sorts the operations of a batch by table and key. Private to the room.
//
// What:    operations on the same row keep their order; a batch promises no order between rows.
// Threads: one.
// Cost:    O(n log n) comparisons, most of them of a few numbers; one vector, kept for its memory.
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

  // Sorts `batch`; the result is valid until the next call.
  std::span<const Row> Of(const Batch& batch);

 private:
  std::vector<Row> rows_;
};

}  // namespace delayd::storage
