// storage/log_order.h — do the logs of a directory go on where its tables and one another end?
//
// RocksDB numbers every change of a store, one after the other, and a log holds them without a gap.
// It does not look: a copy of a log under a higher number ends the process by an assertion of
// Debian's build, and a log of another store, or of another time of this one (a backup copied over
// what was there), is replayed into tables that it does not belong to.
//
// Errors:  none; what is wrong is a sentence for people.
// Threads: one.
// Cost:    a few instructions a record.
// Source:  RocksDB's write batches: number of the first change u64, count u32, both little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace delayd::storage {

class LogOrder {
 public:
  // The last change that the MANIFEST knows of, when it tells.
  void SetTablesEnd(std::optional<uint64_t> change) { tables_end_ = change; }

  // A whole record; in the order of the logs.
  void Add(std::string_view record);

  bool has_changes() const { return tables_end_.value_or(0) > 0 || next_.has_value(); }

  // A whole record stands where the tables end, so these are the logs of this MANIFEST, and it was
  // not cut before them.
  bool meets_tables() const {
    return tables_end_.has_value() && next_.has_value() && !wrong_.has_value();
  }

  // "goes on with change 12 where change 7 is due"; nothing while all is in order.
  const std::optional<std::string>& wrong() const { return wrong_; }

 private:
  std::optional<uint64_t> tables_end_;
  std::optional<uint64_t> next_;  // nothing before the first record
  std::optional<std::string> wrong_;
};

}  // namespace delayd::storage
