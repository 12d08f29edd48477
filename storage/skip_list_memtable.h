// storage/skip_list_memtable.h — the skip list of skip_list.h as the memtable of a RocksDB table.
// Private to the room.
//
// What:    RocksDB's own list, as Debian builds it, checks its order with two more comparisons at
//          each step, and each comparison is three calls; inserting rows was most of what a commit
//          costs (docs/decisions/0029). Memory only: nothing of it is on disk.
// Errors:  the tables must be ordered bytewise, which NewSkipListMemtables' caller sees to.
// Threads: one writer at a time (allow_concurrent_memtable_write off), any number of readers.
#pragma once

#include <memory>

#include <rocksdb/memtablerep.h>

#include "storage/key_head.h"
#include "storage/skip_list.h"

namespace delayd::storage {

std::shared_ptr<rocksdb::MemTableRepFactory> NewSkipListMemtables(HeadKind kind);

// Collects what DB::GetApproximateMemTableStats finds in these memtables, on this thread and as
// long as it lives. RocksDB's own answer says nothing of deletes.
class MemtableCount {
 public:
  MemtableCount();
  ~MemtableCount();
  MemtableCount(const MemtableCount&) = delete;
  MemtableCount& operator=(const MemtableCount&) = delete;

  const SkipList::Count& sum() const { return sum_; }

 private:
  SkipList::Count sum_;
};

}  // namespace delayd::storage
