// storage/rocks_job_store.h — RocksDB behind the door.
//
// Errors:  Open tells apart: a directory in use by another process (kFailedPrecondition,
// "data_dir_in_use"), a schema
//          newer than this program (kFailedPrecondition, "newer_schema"), damage (kDataLoss), and a
//          directory that cannot be made or read (kUnavailable or kPermissionDenied). Every message
//          names the path and the cure.
// Threads: as storage/job_store.h says.
// Cost:    opening replays the write-ahead log, which is capped at 64 MiB: about a second.
// Source:  options and pitfalls of RocksDB 7.8.3 as docs/storage-format.md explains them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "storage/job_store.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace delayd::storage {

struct RocksJobStoreOptions {
  std::string path;
  // Test seam: null is the real machine; a fault-injecting environment takes its place in tests.
  rocksdb::Env* env = nullptr;
  uint64_t block_cache_bytes = uint64_t{64} << 20;
  uint64_t wal_bytes_max = uint64_t{64} << 20;
};

StatusOr<std::unique_ptr<JobStore>> OpenRocksJobStore(const RocksJobStoreOptions& options);

}  // namespace delayd::storage
