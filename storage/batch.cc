#include "storage/batch.h"

#include <utility>

#include "base/check.h"

namespace delayd::storage {

std::string_view TableName(Table table) {
  switch (table) {
    case Table::kMeta:
      return "default";
    case Table::kTimers:
      return "timers";
    case Table::kIndex:
      return "index";
    case Table::kByQueue:
      return "by_queue";
    case Table::kKeys:
      return "keys";
    case Table::kBig:
      return "big";
    case Table::kDead:
      return "dead";
    case Table::kDone:
      return "done";
    case Table::kQueues:
      return "queues";
  }
  DELAYD_CHECK(false);
}

void Batch::Reserve(size_t ops, size_t bytes) {
  ops_.reserve(ops);
  buffer_.reserve(bytes);
}

void Batch::Put(Table table, std::string_view key, std::string_view value) {
  Add(table, false, key, value);
}

void Batch::PutLarge(Table table, std::string_view key, std::string value) {
  Add(table, false, key, {});
  large_bytes_ += value.size();
  large_.push_back(std::move(value));
  ops_.back().large = static_cast<uint32_t>(large_.size());
}

void Batch::Delete(Table table, std::string_view key) {
  Add(table, true, key, {});
  ++deletes_;
}

void Batch::Add(Table table, bool is_delete, std::string_view key, std::string_view value) {
  DELAYD_CHECK(static_cast<size_t>(table) < kTableCount);
  ops_.push_back({.offset = buffer_.size(),
                  .key_size = static_cast<uint32_t>(key.size()),
                  .value_size = static_cast<uint32_t>(value.size()),
                  .large = 0,
                  .table = table,
                  .is_delete = is_delete});
  buffer_.append(key);
  buffer_.append(value);
}

}  // namespace delayd::storage
