// storage/store_env.h — what stands between RocksDB and the disk: table files are checked when they
// are opened, logs are filled ahead. Private to the room.
#pragma once

#include <memory>

#include <rocksdb/env.h>

namespace delayd::storage {

// `base` must live as long as what is returned; null is the real machine.
std::unique_ptr<rocksdb::Env> NewStoreEnv(rocksdb::Env* base);

}  // namespace delayd::storage
