// storage/flush_now.h — what is in memory goes to disk without waiting for merges. Private to the
// room.
//
// What:    RocksDB's Flush waits, unless it is told not to, until merges have made so much room at
//          level 0 that one file more holds up no write: behind a rush that is minutes, which
//          nothing ends.
// Threads: any.
// Cost:    the write itself; a question is a look at two counters.
#pragma once

#include <vector>

#include <rocksdb/db.h>

namespace delayd::storage {

// Do writes wait for merges? One file more at level 0 would have them wait for longer.
bool MergesLag(rocksdb::DB* db);

// Waits for the disk, and for a write that waits already.
rocksdb::Status FlushNow(rocksdb::DB* db,
                         const std::vector<rocksdb::ColumnFamilyHandle*>& families);

}  // namespace delayd::storage
