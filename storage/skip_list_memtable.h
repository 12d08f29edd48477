// storage/skip_list_memtable.h — makes the skip list of skip_list.h the memtable of a RocksDB
// table. Private to the room.
//
// What:    RocksDB's own list, as Debian builds it, verifies its order with two more comparisons at
//          each step, and each comparison is three calls; inserting rows was most of the cost of a
//          commit (docs/decisions/0029). It exists in memory only: nothing of it is on disk.
// Errors:  the tables must be ordered bytewise, which the caller of NewSkipListMemtables ensures.
// Threads: one writer at a time (allow_concurrent_memtable_write off), any number of readers.
#pragma once

#include <memory>

#include <rocksdb/memtablerep.h>

#include "storage/key_head.h"
#include "storage/skip_list.h"

namespace delayd::storage {

std::shared_ptr<rocksdb::MemTableRepFactory> NewSkipListMemtables(HeadKind kind);

// While it lives, collects on its thread the counts that DB::GetApproximateMemTableStats finds in
// these memtables. RocksDB's own answer does not count deletes.
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
