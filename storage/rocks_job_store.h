// storage/rocks_job_store.h — RocksDB behind the door.
//
// Errors:  Open tells apart, by reason: a directory in use by another process ("data_dir_in_use"),
//          one that holds something else ("data_dir_foreign"), a schema newer than this program
//          ("newer_schema"), damage to acknowledged data (kDataLoss, "damaged_store"), and a
//          directory that cannot be made or read. Every message names the path and the cure.
// Threads: as storage/job_store.h says.
// Cost:    opening scans and replays the write-ahead log, which is capped at 64 MiB: about a
// second. Source:  options and pitfalls of RocksDB 7.8.3 as docs/storage-format.md explains them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "storage/job_store.h"
#include "storage/recovery.h"

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
  // Only at the operator's word (delayctl recover --accept-loss): damaged acknowledged batches, and
  // all that stand behind them, are copied aside, dropped and counted in the report.
  bool accept_loss = false;
};

// `report`, when there is one, tells what was found and repaired, also when the open failed.
StatusOr<std::unique_ptr<JobStore>> OpenRocksJobStore(const RocksJobStoreOptions& options,
                                                      RecoveryReport* report = nullptr);

}  // namespace delayd::storage
