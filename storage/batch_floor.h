// storage/batch_floor.h — a number the store has certainly reached, kept outside of RocksDB.
//
// RocksDB cannot see that its newest log was cut at a record boundary or deleted: it simply opens
// an older state. The file BATCH holds the number of a batch that was acknowledged; a store that is
// behind that number has lost something. The number is exact after an orderly shutdown. While the
// store runs it trails: it is written for the first batch, so that the loss of the whole log is
// noticed, then after 2, 4, 8 and from then on every kBatchFloorStep more.
//
// Errors:  an unreadable BATCH counts as no floor: the file only guards, and nothing depends on it.
//          The recovery report mentions it.
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

  // The floor that an earlier run left; nothing where there is none or it is damaged.
  std::optional<uint64_t> Read() const;

  // Opens the file without changing it, so that an unwritable file is refused before the store
  // itself is touched.
  Status Open();

  // `number` is durable. Writes it when it is a step ahead of the number written last.
  void Raise(uint64_t number);

  // Writes `number` whatever the file held before, and waits for the disk.
  Status Set(uint64_t number);

 private:
  Status Write(uint64_t number);

  std::string path_;
  UniqueFd file_;
  uint64_t written_ = 0;
  uint64_t step_ = 1;
};

}  // namespace delayd::storage
