// Estimates how many rows lie in ranges, without reading any.
#include <algorithm>
#include <list>
#include <map>

#include <rocksdb/db.h>
#include <rocksdb/metadata.h>

#include "storage/rocks_store.h"
#include "storage/row_marks.h"
#include "storage/skip_list_memtable.h"

namespace delayd::storage {
namespace {

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// A table's files as RocksDB describes them, with the row marks of each.
class MarkedFiles {
 public:
  Status Read(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
    DELAYD_RETURN_IF_ERROR(FromRocks(db->GetPropertiesOfAllTables(family, &properties_),
                                     "cannot read the properties of table files"));
    std::map<std::string, const rocksdb::TableProperties*> by_name;
    for (const auto& [path, properties] : properties_) {
      by_name.emplace(BaseName(path), properties.get());
    }
    rocksdb::ColumnFamilyMetaData meta;
    db->GetColumnFamilyMetaData(family, &meta);
    for (const auto& level : meta.levels) {
      for (const auto& file : level.files) {
        if (const auto found = by_name.find(BaseName(file.name)); found != by_name.end()) {
          files_.emplace_back(*found->second, file.smallestkey, file.largestkey);
        }
      }
    }
    return OkStatus();
  }

  int64_t Rows(const KeyRange& range) const {
    int64_t rows = 0;
    for (const RowMarks& file : files_) {
      rows += file.Before(range.to) - file.Before(range.from);
    }
    return rows;
  }

 private:
  rocksdb::TablePropertiesCollection properties_;
  std::list<RowMarks> files_;
};

int64_t RowsInMemory(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, const KeyRange& range) {
  const MemtableCount count;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  db->GetApproximateMemTableStats(family, {range.from, range.to}, &entries, &bytes);
  const SkipList::Count& sum = count.sum();
  return static_cast<int64_t>(sum.entries) - 2 * static_cast<int64_t>(sum.deletes);
}

// Identifies the current set of files and memtables.
uint64_t VersionOf(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  uint64_t version = 0;
  db->GetIntProperty(family, rocksdb::DB::Properties::kCurrentSuperVersionNumber, &version);
  return version;
}

}  // namespace

StatusOr<std::vector<uint64_t>> RocksJobStore::EstimateRows(
    Table table, std::span<const KeyRange> ranges) const {
  DELAYD_CHECK(table == Table::kTimers || table == Table::kByQueue || table == Table::kDead);
  if (db_ == nullptr) {
    return StoreClosed();
  }
  rocksdb::ColumnFamilyHandle* family = families_[static_cast<size_t>(table)];
  std::vector<uint64_t> rows;
  // Repeats if a memtable became a file meanwhile: its rows would be missed, or counted twice.
  for (int tries = 0; tries < 4; ++tries) {
    const uint64_t version = VersionOf(db_.get(), family);
    MarkedFiles files;
    DELAYD_RETURN_IF_ERROR(files.Read(db_.get(), family));
    rows.clear();
    for (const KeyRange& range : ranges) {
      const int64_t sum = files.Rows(range) + RowsInMemory(db_.get(), family, range);
      rows.push_back(static_cast<uint64_t>(std::max<int64_t>(sum, 0)));
    }
    if (VersionOf(db_.get(), family) == version) {
      break;
    }
  }
  return rows;
}

}  // namespace delayd::storage
