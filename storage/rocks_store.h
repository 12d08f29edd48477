// storage/rocks_store.h — the class behind storage/rocks_job_store.h. Private to the room.
//
// Threads: as storage/job_store.h says; RocksDB's own threads report errors through StopCause.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/write_batch.h>

#include "base/check.h"
#include "storage/batch_floor.h"
#include "storage/batch_rep.h"
#include "storage/data_dir.h"
#include "storage/merge_room.h"
#include "storage/rest_flush.h"
#include "storage/rocks_figures.h"
#include "storage/rocks_job_store.h"
#include "storage/rocks_status.h"
#include "storage/same_directory.h"
#include "storage/tombstone_sweeper.h"
#include "storage/write_limits.h"
#include "storage/write_order.h"
#include "storage/write_rest.h"

namespace delayd::storage {

inline rocksdb::Slice ToSlice(std::string_view bytes) {
  // RocksDB asserts that a slice has an address, even an empty one.
  return bytes.empty() ? rocksdb::Slice("", 0) : rocksdb::Slice(bytes.data(), bytes.size());
}

inline constexpr std::array<uint64_t, 15> kFsyncBoundsUs = {50,
                                                            100,
                                                            250,
                                                            500,
                                                            1'000,
                                                            2'500,
                                                            5'000,
                                                            10'000,
                                                            25'000,
                                                            50'000,
                                                            100'000,
                                                            250'000,
                                                            500'000,
                                                            1'000'000,
                                                            5'000'000};

// The first error of the store's life, from the committer or from RocksDB's own threads.
class StopCause {
 public:
  void Set(const Status& cause) {
    const std::scoped_lock lock(mutex_);
    if (!cause_.has_value()) {
      cause_ = cause;
      stopped_.store(true, std::memory_order_release);
    }
  }

  Status Check() const {
    if (!stopped_.load(std::memory_order_acquire)) {
      return OkStatus();
    }
    const std::scoped_lock lock(mutex_);
    // Damage that a flush or a compaction ran into would be there again after a restart.
    const std::string_view cure =
        cause_->code() == StatusCode::kDataLoss ? "" : "; restart to read what is true";
    return {cause_->code(),
            "the store has stopped after an error (" + cause_->message() + ")" + std::string(cure),
            cause_->reason()};
  }

 private:
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;
  std::optional<Status> cause_;
};

// A failed flush must not be survived: 7.8 can lose the output of other flushes while it retries.
// The next commit fails, and the process ends. A failed compaction has the same effect, unless it
// found no room: MergeRoom, which is called first, clears that error (storage/merge_room.h).
class StopOnBackgroundError final : public rocksdb::EventListener {
 public:
  explicit StopOnBackgroundError(std::shared_ptr<StopCause> cause) : cause_(std::move(cause)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* error) override {
    if (!error->ok()) {
      cause_->Set(FromRocks(*error, "background write"));
    }
  }

  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                            rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

 private:
  std::shared_ptr<StopCause> cause_;
};

// Reads from a database as it is now, or as it was at a snapshot.
class RocksReader {
 public:
  RocksReader(rocksdb::DB* db,
              const std::vector<rocksdb::ColumnFamilyHandle*>* families,
              const rocksdb::Snapshot* snapshot)
      : db_(db), families_(families), snapshot_(snapshot) {}

  Status Get(Table table, std::string_view key, std::string* value) const;
  // Ends early at more than `deleted_rows_max` consecutive deleted rows; 0: no limit.
  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const JobReader::Visitor& visit,
              uint64_t deleted_rows_max = 0) const;

 private:
  rocksdb::ColumnFamilyHandle* family(Table table) const {
    return (*families_)[static_cast<size_t>(table)];
  }

  rocksdb::DB* db_;
  const std::vector<rocksdb::ColumnFamilyHandle*>* families_;
  const rocksdb::Snapshot* snapshot_;
};

class RocksJobStore final : public JobStore {
 public:
  RocksJobStore(DataDir dir, std::shared_ptr<StopCause> stop)
      : dir_(std::move(dir)),
        same_directory_(dir_.path()),
        floor_(dir_.path()),
        stop_(std::move(stop)) {}

  ~RocksJobStore() override;

  Status Open(const RocksJobStoreOptions& options, RecoveryReport* report);

  Status Get(Table table, std::string_view key, std::string* value) const override;
  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override;
  Status ScanAhead(Table table,
                   std::string_view from,
                   std::string_view to,
                   const Visitor& visit) const override;
  // Estimated from the properties of files and the heights of memtable entries: right to some
  // hundred rows or a tenth, without reading a row. (rocks_estimate.cc)
  StatusOr<std::vector<uint64_t>> EstimateRows(Table table,
                                               std::span<const KeyRange> ranges) const override;
  using JobStore::Commit;
  Status Commit(const Batch& batch, const OnDurable& on_durable) override;
  Status Check() override;
  Status Close() override;

  Status BackUpTo(const std::string& path, const GoOn& go_on);
  StatusOr<std::unique_ptr<JobReader>> Snapshot() const;
  RocksFigures Figures() const;  // rocks_figures.cc

  // Only while the store is open.
  uint64_t sweeps_done() const {
    uint64_t done = 0;
    for (const auto& sweeper : sweepers_) {
      done += sweeper->sweeps_done();
    }
    return done;
  }

  uint64_t rests() const { return rest_flush_->rests(); }

 private:
  StatusOr<uint64_t> NumberIn(const Batch& batch, std::span<const WriteOrder::Row> rows) const;
  Status Write(const Batch& batch,
               std::span<const WriteOrder::Row> rows,
               const OnDurable& on_durable);
  Status OpenDatabase(const RocksJobStoreOptions& options, bool create, RecoveryReport* report);
  rocksdb::Status TryOpen(const RocksJobStoreOptions& options, bool create, bool verify_logs);
  Status CheckEndOfTables(const RocksJobStoreOptions& options, RecoveryReport* report) const;
  Status MakeRoom(const RocksJobStoreOptions& options, bool holds_store) const;
  void RemoveLeftovers(const RocksJobStoreOptions& options) const;
  Status NoRoomToOpen(const RocksJobStoreOptions& options, const rocksdb::Status& status) const;
  Status MakeSchema();
  StatusOr<bool> HoldsStore(const RocksJobStoreOptions& options) const;
  Status CheckOurs(const RocksJobStoreOptions& options) const;
  Status LookFirst(const RocksJobStoreOptions& options) const;
  Status OfAnotherProgram() const;
  rocksdb::Status CloseDatabase();
  void MakeSweepers(uint64_t deletes_min);
  Status CheckPlaceOfBackup(const std::string& directory) const;

  DataDir dir_;  // first, so that the lock is released last
  SameDirectory same_directory_;
  BatchFloor floor_;
  uint64_t batch_number_ = 0;  // of the last batch that is durable
  std::shared_ptr<StopCause> stop_;
  std::shared_ptr<MergeRoom> merge_room_;
  std::unique_ptr<rocksdb::Env> env_;  // outlives db_
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // by Table
  FamilyIds family_ids_{};
  WriteOrder write_order_;
  uint64_t commits_ = 0;
  WriteAllowance allowance_;
  mutable std::mutex fsync_mutex_;
  Histogram fsync_us_{kFsyncBoundsUs};  // guarded by fsync_mutex_
  // While the database is open.
  std::mutex sweep_turn_;
  std::vector<std::unique_ptr<TombstoneSweeper>> sweepers_;
  std::unique_ptr<RestFlush> rest_flush_;  // the same
  std::optional<WriteLimits> write_limits_;
};

// Are the tables the ones this program knows? `manifest` is the name of the file that lists them.
Status CheckTables(const rocksdb::DBOptions& options,
                   const DataDir& dir,
                   const std::string& manifest);

// Would the store open once torn tails are cut, and, where accepted, lost batches dropped? `dir` is
// locked; nothing in it is changed. `report` may be null.
Status LookBeforeOpen(const DataDir& dir,
                      const RocksJobStoreOptions& options,
                      bool was_complete,
                      RecoveryReport* report = nullptr);

// Is the store's schema of a version that we know? False: it has none, and need not have one.
StatusOr<bool> CheckSchema(const RocksReader& store, const DataDir& dir, bool may_be_missing);

// Has the store at least reached the batch that BATCH records, and, if it holds jobs, was it ever
// complete (HoldsStore)? Its batch number goes into the report.
Status CheckBatchNumber(const RocksReader& store,
                        const std::string& directory,
                        bool was_complete,
                        bool accept_loss,
                        RecoveryReport* report);

// `store` must have come from OpenRocksJobStore.
inline RocksJobStore& AsRocks(JobStore& store) {
  auto* rocks = dynamic_cast<RocksJobStore*>(&store);
  DELAYD_CHECK(rocks != nullptr);
  return *rocks;
}

inline const RocksJobStore& AsRocks(const JobStore& store) {
  const auto* rocks = dynamic_cast<const RocksJobStore*>(&store);
  DELAYD_CHECK(rocks != nullptr);
  return *rocks;
}

}  // namespace delayd::storage
