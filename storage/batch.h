// storage/batch.h — the puts and deletes of one commit: all of them become durable, or none.
//
// Units:   bytes() counts keys and values, without any store's own overhead.
// Errors:  none; a table outside the enumeration is a failed check.
// Threads: a value. The engine fills it, moves it to the committer, and does not touch it again.
// Cost:    one growing buffer for the whole batch; no allocation per operation. Large values are
//          taken over as they are: a batch may hold 30 MB of them, and its buffer, growing to that,
//          would take twice as many pages, each with a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace delayd::storage {

// The tables of the schema (docs/storage-format.md). One RocksDB column family each; append only,
// never renumber.
enum class Table : uint8_t {
  kMeta = 0,     // "schema", "lwm", "batch_no", "id_hwm", "clock", ... -> fixed structs
  kTimers = 1,   // key_due, id -> the job's record, with payloads up to 1 KiB
  kIndex = 2,    // id -> where its record is: table, queue, time
  kByQueue = 3,  // queue id, key_due, id -> nothing: lists of one queue in due order
  kKeys = 4,     // queue id, client key -> id, fingerprint, expiry
  kBig = 5,      // id -> payload above 1 KiB
  kDead = 6,     // queue id, died, id -> record and last error
  kDone = 7,     // finished, id -> summary, or its story; trimmed by retention
  kQueues = 8,   // name -> id, pause
};
inline constexpr size_t kTableCount = 9;
std::string_view TableName(Table table);

class Batch {
 public:
  struct Op {
    Table table;
    bool is_delete;
    std::string_view key;
    std::string_view value;  // empty for a delete
  };

  // Reserves memory for this many operations and bytes.
  void Reserve(size_t ops, size_t bytes);

  void Put(Table table, std::string_view key, std::string_view value);
  void PutLarge(Table table, std::string_view key, std::string value);
  void Delete(Table table, std::string_view key);

  size_t size() const { return ops_.size(); }

  bool empty() const { return ops_.empty(); }

  size_t bytes() const { return buffer_.size() + large_bytes_; }

  // The same without large values: what Reserve is to be told for a batch like this one.
  size_t buffer_bytes() const { return buffer_.size(); }

  size_t deletes() const { return deletes_; }

  // Valid until the batch is changed.
  Op op(size_t index) const {
    const Entry& entry = ops_[index];
    const char* const key = buffer_.data() + entry.offset;
    return {.table = entry.table,
            .is_delete = entry.is_delete,
            .key = {key, entry.key_size},
            .value = entry.large == 0 ? std::string_view(key + entry.key_size, entry.value_size)
                                      : std::string_view(large_[entry.large - 1])};
  }

 private:
  struct Entry {
    size_t offset;
    uint32_t key_size;
    uint32_t value_size;
    uint32_t large;  // the value's place in large_, from 1; 0: it follows its key
    Table table;
    bool is_delete;
  };

  void Add(Table table, bool is_delete, std::string_view key, std::string_view value);

  std::string buffer_;
  std::vector<Entry> ops_;
  std::vector<std::string> large_;
  size_t large_bytes_ = 0;
  size_t deletes_ = 0;  // of them
};

}  // namespace delayd::storage
