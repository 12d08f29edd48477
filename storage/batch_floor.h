// storage/batch_floor.h — a number the store has certainly reached, kept outside of RocksDB.
//
// RocksDB cannot see that its newest log was cut at a record boundary or deleted: it opens, older.
// The file BATCH holds the number of a batch that was acknowledged; a store that is behind it has
// lost something. It trails by up to kBatchFloorStep batches in flight and is exact after an
// orderly end.
//
// Errors:  an unreadable BATCH is no floor (0): it guards, and nothing hangs on it.
// Threads: one.
// Cost:    Raise is one small write into the page cache every kBatchFloorStep batches, no fsync.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace delayd::storage {

inline constexpr uint64_t kBatchFloorStep = 256;

class BatchFloor {
 public:
  explicit BatchFloor(std::string directory) : path_(std::move(directory) + "/BATCH") {}

  BatchFloor(const BatchFloor&) = delete;
  BatchFloor& operator=(const BatchFloor&) = delete;
  ~BatchFloor();

  // The floor an earlier life left; 0 when there is none.
  uint64_t Read() const;

  // `number` is durable. Written when it is a step ahead of what was written last.
  void Raise(uint64_t number);

  // Writes `number` whatever was there, and waits for the disk.
  Status Set(uint64_t number);

 private:
  Status Write(uint64_t number);

  std::string path_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

}  // namespace delayd::storage
