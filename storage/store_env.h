// storage/store_env.h — what stands between RocksDB and the disk: table files are checked when they
// are opened, logs are filled ahead, large files are removed a piece at a time, the MANIFEST in use
// is not removed at all, no file is touched in a directory that has taken the place of the store's,
// and a log of RocksDB's own that cannot be written is done without. Private to the room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <rocksdb/env.h>

#include "storage/merge_room.h"

namespace delayd::storage {

// `base` is asked for its file system and its clock; null is the real machine. `directory` is the
// store's; `room`, where there is one, is asked where tables are merged.
std::unique_ptr<rocksdb::Env> NewStoreEnv(rocksdb::Env* base,
                                          const std::string& directory,
                                          uint64_t removal_step_bytes,
                                          std::shared_ptr<MergeRoom> room = nullptr);

}  // namespace delayd::storage
