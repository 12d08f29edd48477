// storage/store_env.h — what stands between RocksDB and the disk: table files are checked when they
// are opened, logs are filled ahead, large files are removed a piece at a time. Private to the
// room.
#pragma once

#include <cstdint>
#include <memory>

#include <rocksdb/env.h>

namespace delayd::storage {

// `base` must live as long as what is returned; null is the real machine. Both are those of
// RocksJobStoreOptions.
std::unique_ptr<rocksdb::Env> NewStoreEnv(rocksdb::Env* base, uint64_t removal_step_bytes);

}  // namespace delayd::storage
