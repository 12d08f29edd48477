// storage/rocks_job_store.h — RocksDB behind the door.
//
// Errors:  Open tells apart, by reason: a directory in use by another process ("data_dir_in_use"),
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
  // A directory without a store is refused (kNotFound "no_store"), and nothing is made there.
  bool must_exist = false;
  // Test seam: null is the real machine; a fault-injecting environment takes its place in tests.
  rocksdb::Env* env = nullptr;
  uint64_t block_cache_bytes = uint64_t{64} << 20;
  uint64_t wal_bytes_max = uint64_t{64} << 20;
  // A MANIFEST of more bytes is begun anew with what it amounts to.
  uint64_t manifest_bytes_max = uint64_t{16} << 20;
  // Files of more bytes are removed by so many at a time (storage/gradual_removal.h).
  uint64_t removal_step_bytes = uint64_t{4} << 20;
  // After so many far jobs were cancelled, what they leave behind is worth a compaction.
  uint64_t sweep_deletes_min = 10'000;
  // A store that rests writes its memtables to files when they hold so much, and rests when less
  // than an eighth of it was written in such a time (storage/rest_flush.h).
  uint64_t rest_bytes_min = uint64_t{8} << 20;
  std::chrono::milliseconds rest_period{10'000};
  // Only at the operator's word (delayctl recover --accept-loss): damaged acknowledged batches, and
  // all that stand behind them, are copied aside, dropped and counted in the report. From then on
  // the store opens this way only, until EndRecovery (storage/loss_account.h).
  bool accept_loss = false;
};

// `report`, when there is one, tells what was found and repaired, also when the open failed.
StatusOr<std::unique_ptr<JobStore>> OpenRocksJobStore(const RocksJobStoreOptions& options,
                                                      RecoveryReport* report = nullptr);

// The store as it is now, while it goes on: for VerifyStore on a running daemon. It pins files and
// memtables, and must be gone before the store is closed. Any thread.
StatusOr<std::unique_ptr<JobReader>> SnapshotRocksJobStore(const JobStore& store);

// Asked again and again; false ends the work with kUnavailable "stopped".
using GoOn = std::function<bool()>;

// A whole copy in `directory`, which must not exist yet, or none; while the store goes on. Any
// thread. To restore, use a copy of it as the data directory.
Status BackUpRocksJobStore(
    JobStore* store, const std::string& directory, const GoOn& go_on = [] { return true; });

// `tell` is given what a merge of tables would have needed where the disk had no room for it,
// where none was waiting, on a thread of RocksDB's. For a log; the room has none.
void OnMergeRefused(void (*tell)(const std::string& what));

// For `delayctl verify` on a directory that no daemon has open. Changes nothing but the lock file;
// a torn tail is told in the report and left alone; damage is refused as by an open. With
// accept_loss the store is read as it would be after the loss, and the loss is in the report.
StatusOr<std::unique_ptr<JobReader>> OpenRocksJobReader(const RocksJobStoreOptions& options,
                                                        RecoveryReport* report = nullptr);

}  // namespace delayd::storage
