// storage/flush_now.h — flushes memtables to disk without waiting for compactions. Private to the
// room.
//
// What:    by default RocksDB's Flush waits until compactions have made enough room at level 0 that
//          one more file stalls no write. After a burst that takes minutes, and nothing can
//          interrupt it.
// Threads: any.
// Cost:    the write itself; MergesLag looks at two counters.
#pragma once

#include <vector>

#include <rocksdb/db.h>

namespace delayd::storage {

// Are writes stalled by compactions? One more file at level 0 would stall them for longer.
bool MergesLag(rocksdb::DB* db);

// Waits for the disk, and for a write that is stalled already.
rocksdb::Status FlushNow(rocksdb::DB* db,
                         const std::vector<rocksdb::ColumnFamilyHandle*>& families);

}  // namespace delayd::storage
