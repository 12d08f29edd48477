// storage/batch_floor.h — a number the store has certainly reached, kept outside of RocksDB.
//
// RocksDB cannot see that its newest log was cut at a record boundary or deleted: it opens, older.
// The file BATCH holds the number of a batch that was acknowledged; a store that is behind it has
// lost something. It is exact after an orderly end. While the store runs it trails: it is written
// for the first batch, so that a log that is gone as a whole is missed, then after 2, 4, 8 and from
// then on each kBatchFloorStep more.
//
// Errors:  an unreadable BATCH is no floor: it guards, and nothing hangs on it. A recovery tells.
// Threads: one.
// Cost:    Raise is one small write into the page cache every kBatchFloorStep batches, no fsync.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace delayd::storage {

inline constexpr uint64_t kBatchFloorStep = 16;

class BatchFloor {
 public:
  explicit BatchFloor(std::string directory) : path_(std::move(directory) + "/BATCH") {}

  // The floor an earlier life left; nothing where there is none, or it is damaged.
  std::optional<uint64_t> Read() const;

  // Opens the file and changes nothing in it: what cannot be written is refused before the store
  // itself is touched.
  Status Open();

  // `number` is durable. Written when it is a step ahead of what was written last.
  void Raise(uint64_t number);

  // Writes `number` whatever was there, and waits for the disk.
  Status Set(uint64_t number);

 private:
  Status Write(uint64_t number);

  std::string path_;
  UniqueFd file_;
  uint64_t written_ = 0;
  uint64_t step_ = 1;
};

}  // namespace delayd::storage
