// storage/log_scan.h — reads a RocksDB log (a write-ahead log or a MANIFEST) and reports where it
// stops making sense, and whether whole records follow that place.
//
// Why not leave it to RocksDB: its strict mode refuses a last record torn by lost sectors, though
// nobody was told that it was stored. And it takes a damaged length field near the end of a log for
// an unfinished write, and silently drops the acknowledged records behind it. A batch is written
// only once the one before it is durable. So a whole record behind the damage proves that the
// damaged one had been acknowledged. If there is none, the damage can concern only the last,
// unanswered write (or the last answered one: docs/storage-format.md, "What stays unseen").
//
// Errors:  kUnavailable when the file cannot be read; damage is a result, not an error.
// Cost:    one pass at the speed of crc32c and of the disk; memory for one file.
// Source:  RocksDB's log format: 32 KiB blocks of records [masked crc32c u32 | length u16 | type
//          u8], little-endian; a record that crosses a block is first, middle..., last.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::storage {

struct LogScan {
  uint64_t bytes = 0;           // of the file
  uint64_t records = 0;         // whole ones before the damage, or all
  uint64_t records_behind = 0;  // whole ones behind it
  // Where the bytes begin that form no record: the end of the last whole one. Zeroes up to the end
  // of the file are no damage: that space was allocated ahead.
  std::optional<uint64_t> damaged_at;
  std::string last_whole;  // the last one that visit_whole was called with
};

struct LogScanOptions {
  // Called with every whole record before the damage.
  std::function<void(std::string_view record)> visit_whole = nullptr;
  // Called with every whole record behind the damage.
  std::function<void(std::string_view record)> visit_lost = nullptr;
  // An earlier log is damaged, so everything in this one counts as behind that damage.
  bool all_is_lost = false;
};

LogScan ScanLog(std::string_view log, const LogScanOptions& options = {});
StatusOr<LogScan> ScanLogFile(const std::string& path, const LogScanOptions& options = {});

}  // namespace delayd::storage
