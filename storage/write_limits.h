// storage/write_limits.h — where level 0 cannot be merged, commits do not wait for it. Private to
// the room.
//
// What:    RocksDB slows writes down at 20 files of level 0 and lets none through at 36, until they
//          are merged. Where the disk has no room for that merge, acks and cancels would wait for
//          ever. So the limits of a table whose merge waits for room (storage/merge_room.h) are
//          lifted while it has many files; at a start those of each with many, since nothing has
//          been tried yet.
// Errors:  none: what cannot be set is set at the next look.
// Threads: that which commits; the constructor before the first commit.
// Cost:    a look is some properties of RocksDB, behind a flush or a merge. To set limits takes
//          milliseconds: RocksDB writes its options to a file.
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
  // All must outlive it.
  WriteLimits(rocksdb::DB* db,
              const std::vector<rocksdb::ColumnFamilyHandle*>* families,
              MergeRoom* room);

  void Look();

 private:
  bool HasMany(rocksdb::ColumnFamilyHandle* family) const;
  void Set(size_t table, bool lifted);

  rocksdb::DB* const db_;
  const std::vector<rocksdb::ColumnFamilyHandle*>* const families_;
  MergeRoom* const room_;
  std::array<bool, kTableCount> lifted_{};
};

}  // namespace delayd::storage
