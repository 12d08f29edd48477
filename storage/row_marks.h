// storage/row_marks.h — estimates how many rows of a table file lie before a key. Private to the
// room.
//
// What:    a file written with NewRowMarks has a property that holds every 128th key (a mark) and
//          the number of rows that the entries before that key amount to: a put adds one, a delete
//          subtracts one, whichever file the deleted row is in. So the sum over all files is about
//          the number of rows, and a range can be counted without reading a row. A file without the
//          property, from an earlier version, is treated as one with marks at its ends only.
// Errors:  a property that cannot be read is treated as missing.
// Threads: any.
// Cost:    a fifth of a byte of memory per entry of a file; Before is a binary search.
// Source:  RocksDB's TablePropertiesCollector; docs/storage-format.md has the property's form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <rocksdb/table_properties.h>

namespace delayd::storage {

inline constexpr size_t kEntriesPerMark = 128;

// For tables whose keys all have the same size, at most 255 bytes.
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewRowMarks();

class RowMarks {
 public:
  // For the file with these properties, first key and last key. Must not outlive the properties.
  RowMarks(const rocksdb::TableProperties& properties,
           std::string_view smallest,
           std::string_view largest);

  RowMarks(const RowMarks&) = delete;
  RowMarks& operator=(const RowMarks&) = delete;

  // About how many rows lie before `key`: right to half of the rows between two marks.
  int64_t Before(std::string_view key) const;

 private:
  size_t mark_bytes() const;
  std::string_view KeyAt(size_t mark) const;
  int64_t RowsAt(size_t mark) const;

  std::string at_ends_;  // for a file without the property
  std::string_view marks_;
  size_t key_bytes_;
};

}  // namespace delayd::storage
