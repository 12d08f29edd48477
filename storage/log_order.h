// storage/log_order.h — do a directory's logs continue where its tables, and one another, end?
//
// RocksDB numbers every change of a store consecutively, and a log holds them without a gap. It
// does not check this: a copy of a log under a higher number trips an assertion in Debian's build
// and ends the process; a log of another store, or of this store at another time (a backup copied
// over a newer directory), is replayed into tables it does not belong to.
//
// Errors:  none; what is wrong is reported as a sentence for people.
// Threads: one.
// Cost:    a few instructions per record.
// Source:  RocksDB's write batches: number of the first change u64, count u32, both little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace delayd::storage {

class LogOrder {
 public:
  // The last change that the MANIFEST knows of, if it records one.
  void SetTablesEnd(std::optional<uint64_t> change) { tables_end_ = change; }

  // Takes a whole record; call it in the order of the logs.
  void Add(std::string_view record);

  bool has_changes() const { return tables_end_.value_or(0) > 0 || next_.has_value(); }

  // A whole record starts where the tables end. So these logs belong to this MANIFEST, and they
  // were not cut before that point.
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
