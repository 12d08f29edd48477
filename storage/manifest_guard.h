// storage/manifest_guard.h — a file system for RocksDB that protects the MANIFEST named by CURRENT.
// Private to the room.
//
// What:    without that file a store does not open. RocksDB 8.9.1 removes it when the first write
//          of a new MANIFEST fails, for example on a full disk: it confuses the new file with the
//          one in use.
// Errors:  the removal is refused, even if CURRENT cannot be read. RocksDB logs that, and at its
//          next open removes what is really left over.
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
