// storage/rocks_options.h — this store's RocksDB settings, each with its reason. Private to the
// room.
#pragma once

#include <memory>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include "storage/batch.h"
#include "storage/rocks_job_store.h"

namespace delayd::storage {

rocksdb::DBOptions MakeDbOptions(const RocksJobStoreOptions& options,
                                 rocksdb::Env* env = rocksdb::Env::Default());

// In the order of Table; all share one cache.
std::vector<rocksdb::ColumnFamilyDescriptor> MakeColumnFamilies(
    const RocksJobStoreOptions& options);

}  // namespace delayd::storage
