// storage/rocks_figures.h — RocksDB's figures for an operator's monitoring.
//
// Units:   bytes, counts; fsync times in microseconds.
// Errors:  none; a figure that RocksDB does not provide is 0.
// Threads: any.
// Cost:    some dozens of property reads, most under RocksDB's own mutex, and a listing of the
//          directory: tens of microseconds. Nothing is written.
// Source:  properties of RocksDB 7.8; fsync times are those that RocksDB measures itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/histogram.h"
#include "storage/job_store.h"

namespace delayd::storage {

// One table (column family).
struct TableFigures {
  static constexpr size_t kLevels = 7;
  std::array<uint64_t, kLevels> files{};  // by level
  uint64_t file_bytes = 0;
  uint64_t memtable_bytes = 0;
  uint64_t pending_compaction_bytes = 0;
  uint64_t rows_estimate = 0;
};

struct RocksFigures {
  std::array<TableFigures, kTableCount> tables{};
  uint64_t block_cache_bytes = 0;
  uint64_t block_cache_capacity_bytes = 0;
  uint64_t wal_bytes = 0;
  uint64_t running_flushes = 0;
  uint64_t running_compactions = 0;
  uint64_t background_errors = 0;
  uint64_t merges_refused = 0;  // for lack of room on the disk
  uint64_t tables_waiting = 0;  // tables whose last merge was refused
  uint64_t write_stopped = 0;   // 1: RocksDB lets no write through
  Histogram fsync_us;           // of one commit in eight
};

// All zero for a store that is not RocksDB.
RocksFigures ReadRocksFigures(const JobStore& store);

}  // namespace delayd::storage
