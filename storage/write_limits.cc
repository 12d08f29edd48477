#include "storage/write_limits.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include <rocksdb/metadata.h>

namespace delayd::storage {
namespace {

// Files in level 0: some flushes before writes are slowed down.
constexpr int kManyFiles = 16;

}  // namespace

WriteLimits::WriteLimits(rocksdb::DB* db,
                         const std::vector<rocksdb::ColumnFamilyHandle*>* families,
                         MergeRoom* room)
    : db_(db), families_(families), room_(room) {
  for (size_t table = 0; table < families_->size(); ++table) {
    if (HasMany((*families_)[table])) {
      Set(table, /*lifted=*/true);
    }
  }
}

bool WriteLimits::HasMany(rocksdb::ColumnFamilyHandle* family) const {
  std::string files;
  return db_->GetProperty(family, rocksdb::DB::Properties::kNumFilesAtLevelPrefix + "0", &files) &&
         std::atoi(files.c_str()) >= kManyFiles;
}

// The next merge of level 0 reads all of it. One that is under way has its room already; the limits
// are looked at again when it ends.
bool WriteLimits::MergeFits(rocksdb::ColumnFamilyHandle* family) const {
  rocksdb::ColumnFamilyMetaData table;
  db_->GetColumnFamilyMetaData(family, &table);
  const rocksdb::LevelMetaData& level = table.levels[0];
  return std::ranges::any_of(level.files, &rocksdb::SstFileMetaData::being_compacted) ||
         room_->HasRoomToMerge(level.size);
}

void WriteLimits::Look() {
  for (size_t table = 0; table < families_->size(); ++table) {
    rocksdb::ColumnFamilyHandle* const family = (*families_)[table];
    // Once lifted, the limits stay lifted until level 0 is merged: the usual ones would stop writes
    // at once.
    // A merge that waits for its turn may not have been refused yet. When it is, writes may have
    // stopped, and nobody would lift the limits any more.
    const bool lifted = HasMany(family) && (lifted_[table] || room_->IsWaiting(family->GetName()) ||
                                            !MergeFits(family));
    if (lifted != lifted_[table]) {
      Set(table, lifted);
    }
  }
}

void WriteLimits::Set(size_t table, bool lifted) {
  const rocksdb::ColumnFamilyOptions usual;
  const int never = std::numeric_limits<int>::max();
  const rocksdb::Status status =
      db_->SetOptions((*families_)[table],
                      {{"level0_slowdown_writes_trigger",
                        std::to_string(lifted ? never : usual.level0_slowdown_writes_trigger)},
                       {"level0_stop_writes_trigger",
                        std::to_string(lifted ? never : usual.level0_stop_writes_trigger)}});
  if (status.ok()) {
    lifted_[table] = lifted;
  }
}

}  // namespace delayd::storage
