// storage/write_limits.h — keeps commits from waiting for a compaction of level 0 that cannot run.
// Private to the room.
//
// What:    RocksDB slows writes down at 20 files in level 0 and stops them at 36, until a
//          compaction has reduced the number. If the disk has no room for that compaction, acks and
//          cancels would wait for ever. So the limits are lifted for a table with many files whose
//          merge waits for room (storage/merge_room.h), or would have to. At a start they are
//          lifted for every table with many files, since no merge has been tried yet.
// Errors:  none: an option that cannot be set is tried again at the next look.
// Threads: the committing thread; the constructor before the first commit.
// Cost:    a look reads some properties of RocksDB, after a flush or a merge, and while a commit
//          waits at the limit. Setting limits takes milliseconds: RocksDB writes its options to a
//          file.
// Source:  docs/decisions/0107-merges-leave-room.md
#pragma once

#include <array>
#include <vector>

#include <rocksdb/db.h>

#include "storage/job_store.h"
#include "storage/merge_room.h"

namespace delayd::storage {

class WriteLimits {
 public:
  // All arguments must outlive it.
  WriteLimits(rocksdb::DB* db,
              const std::vector<rocksdb::ColumnFamilyHandle*>* families,
              MergeRoom* room);

  void Look();

 private:
  bool HasMany(rocksdb::ColumnFamilyHandle* family) const;
  bool MergeFits(rocksdb::ColumnFamilyHandle* family) const;
  void Set(size_t table, bool lifted);

  rocksdb::DB* const db_;
  const std::vector<rocksdb::ColumnFamilyHandle*>* const families_;
  MergeRoom* const room_;
  std::array<bool, kTableCount> lifted_{};
};

}  // namespace delayd::storage
