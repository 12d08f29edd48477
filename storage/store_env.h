// storage/store_env.h — the layers between RocksDB and the disk. Table files are checked when they
// are opened, logs are filled ahead, large files are removed a piece at a time, and the MANIFEST in
// use is never removed. No file is touched in a directory that has replaced the store's, and a
// failure to write RocksDB's own info log is tolerated. Private to the room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <rocksdb/env.h>

#include "storage/merge_room.h"

namespace delayd::storage {

// `base` supplies the file system and the clock; null means the real machine. `directory` is the
// store's; `room`, if given, is asked before tables are merged.
std::unique_ptr<rocksdb::Env> NewStoreEnv(rocksdb::Env* base,
                                          const std::string& directory,
                                          uint64_t removal_step_bytes,
                                          std::shared_ptr<MergeRoom> room = nullptr);

}  // namespace delayd::storage
