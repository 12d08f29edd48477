// storage/row_marks.h — how many rows of a table file stand before a key, about. Private to the
// room.
//
// What:    a file written with NewRowMarks has a property with every 128th key in it, a mark, and
//          how many rows its entries before that key amount to: a put adds one, a delete takes one
//          away, wherever the row is that it deletes. So the sum over all files is about the number
//          of rows, and a range can be counted without a look at one. A file without the property,
//          of an earlier version, counts as one with marks at its ends only.
// Errors:  a property that cannot be read is none.
// Threads: any.
// Cost:    a fifth of a byte of memory for each entry of a file; Before is a binary search.
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

// For the tables whose keys are all of one size, at most 255 bytes.
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewRowMarks();

class RowMarks {
 public:
  // Of a file with these properties, first and last key. Valid as long as the properties.
  RowMarks(const rocksdb::TableProperties& properties,
           std::string_view smallest,
           std::string_view largest);

  RowMarks(const RowMarks&) = delete;
  RowMarks& operator=(const RowMarks&) = delete;

  // About how many rows stand before `key`: right to half of what is between two marks.
  int64_t Before(std::string_view key) const;

 private:
  size_t mark_bytes() const;
  std::string_view KeyAt(size_t mark) const;
  int64_t RowsAt(size_t mark) const;

  std::string at_ends_;  // of a file without the property
  std::string_view marks_;
  size_t key_bytes_;
};

}  // namespace delayd::storage
