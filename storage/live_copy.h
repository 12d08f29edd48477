// storage/live_copy.h — the files of a running database, linked or copied into a directory. Private
// to the room.
//
// What:    RocksDB writes its memtables out, names its files and keeps them meanwhile. Those that
//          change no more are linked where the file systems are one; the rest is copied, the newest
//          log as far as it goes. Where writes wait for merges the memtables stay in memory, and
//          the logs that hold the same are taken.
// Errors:  those of both disks; kUnavailable "stopped". What there is of the copy stays, the second
//          names do not; those that a kill leaves RocksDB removes at the next start (kTrashEnding).
// Threads: any, beside commits.
// Cost:    a flush, and a write of all that is not linked, which goes to the disk piece by piece.
//          The store's disk keeps what is not taken yet; where it has no links, all that is written
//          and removed meanwhile too.
// Source:  RocksDB's checkpoint, which does the same, and cannot be ended early. Where the disk of
//          the copy goes away, an assertion in Debian's build of it ends the process.
#pragma once

#include <string>
#include <vector>

#include <rocksdb/db.h>

#include "base/status.h"
#include "storage/rocks_job_store.h"

namespace delayd::storage {

// `go_on` is asked before each piece.
Status CopyLiveFiles(rocksdb::DB* db,
                     const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                     const std::string& directory,
                     const GoOn& go_on);

}  // namespace delayd::storage
