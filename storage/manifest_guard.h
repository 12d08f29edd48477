// storage/manifest_guard.h — a file system for RocksDB that keeps the MANIFEST which CURRENT names.
// Private to the room.
//
// What:    without that file a store does not open. RocksDB 8.9.1 removes it when the first write
//          of a new MANIFEST fails, as on a disk that is full: it takes the new one for the one in
//          use.
// Errors:  the removal is refused, also where CURRENT cannot be read. RocksDB logs that, and
//          removes what is really left over when it opens the next time.
// Threads: any.
// Cost:    CURRENT is read when a MANIFEST is removed, which is rare.
// Source:  RocksDB's history, 9.5.0: "handling MANIFEST write error that caused the latest valid
//          MANIFEST file to get deleted".
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

namespace delayd::storage {

// `directory` is the store's, as RocksDB names it.
std::shared_ptr<rocksdb::FileSystem> NewManifestGuard(
    const std::shared_ptr<rocksdb::FileSystem>& base, const std::string& directory);

}  // namespace delayd::storage
