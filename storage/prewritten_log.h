// storage/prewritten_log.h — a file system for RocksDB whose logs are filled with zeroes ahead of
// the writes, so that a sync of a small commit need not wait for the file system's own journal.
// Private to the room.
//
// What:    a write behind the end of a file changes its size and its blocks, and fdatasync must
//          make both durable; a write into blocks that are there and written changes neither. Space
//          that is only allocated does not help: its first write changes the blocks too. Measured:
//          95 against 173 us a sync. Where much is written at once it is not worth its bytes, and
//          nothing is filled ahead.
// Errors:  the disk's. No room for zeroes is none: then nothing is filled ahead any more.
// Threads: as the file system below; one writer a file.
// Cost:    kAheadBytes of zeroes each time the log has used them up.
// Source:  what databases do with their redo logs. Zeroes behind the last record are known to
//          RocksDB's reader (files mapped ahead) and to log_scan.h.
#pragma once

#include <memory>

#include <rocksdb/file_system.h>

namespace delayd::storage {

std::shared_ptr<rocksdb::FileSystem> NewPrewrittenLogs(
    const std::shared_ptr<rocksdb::FileSystem>& base);

}  // namespace delayd::storage
