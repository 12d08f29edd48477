// storage/rocks_job_store.h — JobStore on top of RocksDB.
//
// Errors:  Open distinguishes, by reason: a directory in use by another process
//          ("data_dir_in_use"),
//          one that holds something else ("data_dir_foreign"), a schema newer than this program
//          ("newer_schema"), damage to acknowledged data (kDataLoss, "damaged_store"), and a
//          directory that cannot be made or read. Every message names the path and the cure.
// Threads: as storage/job_store.h says.
// Cost:    opening scans and replays the write-ahead log, which is capped at 64 MiB: about a
//          second.
// Source:  options and pitfalls of RocksDB 7.8.3 as docs/storage-format.md explains them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  // If set, a directory without a store is refused (kNotFound "no_store"), and nothing is created
  // there.
  bool must_exist = false;
  // Test seam: null means the real machine; tests pass a fault-injecting environment.
  rocksdb::Env* env = nullptr;
  uint64_t block_cache_bytes = uint64_t{64} << 20;
  uint64_t wal_bytes_max = uint64_t{64} << 20;
  // A MANIFEST larger than this is replaced by a new one that holds only the current state.
  uint64_t manifest_bytes_max = uint64_t{16} << 20;
  // Larger files are removed in steps of this size (storage/gradual_removal.h).
  uint64_t removal_step_bytes = uint64_t{4} << 20;
  // Once this many jobs due far in the future were cancelled, their tombstones are worth a
  // compaction.
  uint64_t sweep_deletes_min = 10'000;
  // A store at rest flushes its memtables if they hold this much. It is at rest when less than an
  // eighth of that was written within the period (storage/rest_flush.h).
  uint64_t rest_bytes_min = uint64_t{8} << 20;
  std::chrono::milliseconds rest_period{10'000};
  // Only on the operator's request (delayctl recover --accept-loss): damaged acknowledged batches,
  // and everything behind them, are copied aside, dropped and counted in the report. From then on,
  // the store can only be opened this way until EndRecovery (storage/loss_account.h).
  bool accept_loss = false;
};

// `report`, if given, says what was found and repaired, even if the open fails.
StatusOr<std::unique_ptr<JobStore>> OpenRocksJobStore(const RocksJobStoreOptions& options,
                                                      RecoveryReport* report = nullptr);

// The store as it is now, while commits go on: for VerifyStore on a running daemon. It pins files
// and memtables, and must be destroyed before the store is closed. Any thread.
StatusOr<std::unique_ptr<JobReader>> SnapshotRocksJobStore(const JobStore& store);

// Called again and again; false ends the work with kUnavailable "stopped".
using GoOn = std::function<bool()>;

// Makes a complete copy in `directory`, which must not exist yet, or no copy at all; commits go on
// meanwhile. Any thread. To restore, use a copy of it as the data directory.
Status BackUpRocksJobStore(
    JobStore* store, const std::string& directory, const GoOn& go_on = [] { return true; });

// Calls `tell`, on one of RocksDB's threads, when a merge finds no room on the disk and no other
// merge was waiting yet; the text says what it would have needed. This room has no log of its own.
void OnMergeRefused(void (*tell)(const std::string& what));

// For `delayctl verify` on a directory that no daemon has open. Changes nothing but the lock file;
// a torn tail is reported and left alone; damage is refused as by an open. With accept_loss the
// store is read as it would be after the loss, and the loss is in the report.
StatusOr<std::unique_ptr<JobReader>> OpenRocksJobReader(const RocksJobStoreOptions& options,
                                                        RecoveryReport* report = nullptr);

}  // namespace delayd::storage
