#include "storage/rocks_figures.h"

#include <algorithm>
#include <string>

#include <rocksdb/db.h>

#include "storage/numbered_files.h"
#include "storage/rocks_store.h"

namespace delayd::storage {

namespace {

uint64_t Property(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, const std::string& name) {
  uint64_t value = 0;
  return db->GetIntProperty(family, name, &value) ? value : 0;
}

TableFigures ReadTable(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  using Names = rocksdb::DB::Properties;
  TableFigures figures;
  for (size_t level = 0; level < TableFigures::kLevels; ++level) {
    std::string files;
    if (db->GetProperty(family, Names::kNumFilesAtLevelPrefix + std::to_string(level), &files)) {
      figures.files[level] = std::stoull(files);
    }
  }
  figures.file_bytes = Property(db, family, Names::kTotalSstFilesSize);
  figures.memtable_bytes = Property(db, family, Names::kCurSizeAllMemTables);
  figures.pending_compaction_bytes = Property(db, family, Names::kEstimatePendingCompactionBytes);
  figures.rows_estimate = Property(db, family, Names::kEstimateNumKeys);
  return figures;
}

}  // namespace

RocksFigures RocksJobStore::Figures() const {
  using Names = rocksdb::DB::Properties;
  RocksFigures figures;
  if (db_ == nullptr) {
    return figures;
  }
  for (size_t table = 0; table < families_.size(); ++table) {
    figures.tables[table] = ReadTable(db_.get(), families_[table]);
  }
  rocksdb::ColumnFamilyHandle* any = families_[0];
  figures.block_cache_bytes = Property(db_.get(), any, Names::kBlockCacheUsage);
  figures.block_cache_capacity_bytes = Property(db_.get(), any, Names::kBlockCacheCapacity);
  // RocksDB's own call (GetSortedWalFiles) would write to its LOG and wait for files that are being
  // removed: on a disk that hangs, the serving thread would hang with it.
  const StatusOr<uint64_t> wal_bytes = LogBytes(dir_.path());
  figures.wal_bytes = wal_bytes.ok() ? *wal_bytes : 0;
  figures.running_flushes = Property(db_.get(), any, Names::kNumRunningFlushes);
  figures.running_compactions = Property(db_.get(), any, Names::kNumRunningCompactions);
  // Only errors that ended the store. RocksDB counts a refused merge a moment after merge_room_
  // does.
  const uint64_t errors = Property(db_.get(), any, Names::kBackgroundErrors);
  figures.background_errors = errors - std::min(errors, merge_room_->refusals());
  figures.merges_refused = merge_room_->refusals();
  figures.tables_waiting = merge_room_->CountWaiting();
  figures.write_stopped = Property(db_.get(), any, Names::kIsWriteStopped);
  const std::scoped_lock lock(fsync_mutex_);
  figures.fsync_us = fsync_us_;
  return figures;
}

RocksFigures ReadRocksFigures(const JobStore& store) {
  const auto* rocks = dynamic_cast<const RocksJobStore*>(&store);
  return rocks == nullptr ? RocksFigures() : rocks->Figures();
}

}  // namespace delayd::storage
