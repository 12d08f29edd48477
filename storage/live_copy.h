// storage/live_copy.h — links or copies the files of a running database into a directory. Private
// to the room.
//
// What:    RocksDB flushes its memtables, lists its files and keeps them until the copy is done.
//          Files that no longer change are hard-linked where both directories are on one file
//          system and in one mount (each ReadWritePaths= of a service is one of its own); the rest
//          is copied, the newest log up to its current end. While writes are stalled by
//          compactions, the memtables stay in memory, and the logs that hold the same rows are
//          taken instead.
// Errors:  those of both disks; kUnavailable "stopped"; kResourceExhausted "disk_full" when
//          `has_room` says no. What was copied by then stays, the extra hard links do not; RocksDB
//          removes those left by a kill at the next start (kTrashEnding).
// Threads: any, beside commits.
// Cost:    a flush, and a write of all that is not linked, which goes to the disk piece by piece.
//          The store's disk keeps what is not yet copied; where linking is impossible, it also
//          keeps every file written and removed meanwhile.
// Source:  RocksDB's checkpoint, which does the same but cannot be stopped early. If the disk of
//          the copy disappears, an assertion in Debian's build of it ends the process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <rocksdb/db.h>

#include "base/status.h"
#include "storage/rocks_job_store.h"

namespace delayd::storage {

// `go_on` is called before each piece, and so is `has_room` once more is copied than where tables
// are linked.
Status CopyLiveFiles(rocksdb::DB* db,
                     const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                     const std::string& directory,
                     const GoOn& go_on,
                     const std::function<bool()>& has_room);

}  // namespace delayd::storage
