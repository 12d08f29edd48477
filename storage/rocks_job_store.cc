#include "storage/rocks_job_store.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/write_batch.h>

#include "base/check.h"
#include "storage/batch_floor.h"
#include "storage/data_dir.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_options.h"
#include "storage/rocks_status.h"

namespace delayd::storage {
namespace {

#ifdef DELAYD_MUTANT_NO_SYNC
// A planted fault, compiled into a test's own copy of this room only: the power-loss test has to
// notice it.
constexpr bool kSyncCommits = false;
#else
constexpr bool kSyncCommits = true;
#endif

rocksdb::Slice ToSlice(std::string_view bytes) {
  // RocksDB asserts that a slice has an address, even an empty one.
  return bytes.empty() ? rocksdb::Slice("", 0) : rocksdb::Slice(bytes.data(), bytes.size());
}

std::string_view ToView(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

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
    return Unavailable("the store has stopped after an error (" + cause_->message() +
                           "); restart to read what is true",
                       "store_stopped");
  }

 private:
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;
  std::optional<Status> cause_;
};

// A failed flush or compaction must not be survived: 7.8 can lose the output of other flushes while
// it retries. The next commit fails, and the process ends.
class StopOnBackgroundError final : public rocksdb::EventListener {
 public:
  explicit StopOnBackgroundError(std::shared_ptr<StopCause> cause) : cause_(std::move(cause)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* error) override {
    cause_->Set(FromRocks(*error, "background write"));
  }

 private:
  std::shared_ptr<StopCause> cause_;
};

class RocksJobStore final : public JobStore {
 public:
  RocksJobStore(DataDir dir, std::shared_ptr<StopCause> stop)
      : dir_(std::move(dir)), floor_(dir_.path()), stop_(std::move(stop)) {}

  ~RocksJobStore() override;

  Status Open(const RocksJobStoreOptions& options, RecoveryReport* report);

  Status Get(Table table, std::string_view key, std::string* value) const override;
  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override;
  Status Commit(const Batch& batch) override;
  Status Close() override;

 private:
  Status OpenDatabase(const RocksJobStoreOptions& options, bool create);
  Status CheckSchema(bool create);
  Status CheckBatchNumber(bool accept_loss, RecoveryReport* report);
  Status RefuseUnknownTables(const rocksdb::DBOptions& options) const;
  rocksdb::Status CloseDatabase();

  rocksdb::ColumnFamilyHandle* family(Table table) const {
    return families_[static_cast<size_t>(table)];
  }

  DataDir dir_;  // the lock is given up last
  BatchFloor floor_;
  uint64_t batch_number_ = 0;  // of the last batch that is durable
  std::shared_ptr<StopCause> stop_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // by Table
  rocksdb::WriteBatch write_batch_;                     // kept for its memory
};

RocksJobStore::~RocksJobStore() {
  if (db_ != nullptr) {
    // As after a crash: what is not flushed is in the log.
    CloseDatabase().PermitUncheckedError();
  }
}

Status RocksJobStore::Open(const RocksJobStoreOptions& options, RecoveryReport* report) {
  DELAYD_ASSIGN_OR_RETURN(const bool holds_store, dir_.HoldsStore());
  DELAYD_RETURN_IF_ERROR(RecoverLogs(dir_.path(), options.accept_loss, report));
  DELAYD_RETURN_IF_ERROR(OpenDatabase(options, !holds_store));
  DELAYD_RETURN_IF_ERROR(CheckSchema(!holds_store));
  DELAYD_RETURN_IF_ERROR(CheckBatchNumber(options.accept_loss, report));
  return holds_store ? OkStatus() : dir_.MarkComplete();
}

Status RocksJobStore::OpenDatabase(const RocksJobStoreOptions& options, bool create) {
  rocksdb::DBOptions db_options = MakeDbOptions(options);
  db_options.create_if_missing = create;
  db_options.create_missing_column_families = create;
  // The logs that were dropped at the operator's word would be missed.
  db_options.track_and_verify_wals_in_manifest = !options.accept_loss;
  db_options.listeners.push_back(std::make_shared<StopOnBackgroundError>(stop_));
  if (!create) {
    DELAYD_RETURN_IF_ERROR(RefuseUnknownTables(db_options));
  }
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(db_options, dir_.path(), MakeColumnFamilies(options), &families_, &db);
  db_.reset(db);
  if (status.IsInvalidArgument()) {
    // A store that was complete lacks a file or a table.
    return DataLoss("data directory " + dir_.path() + " is damaged: " + status.ToString() +
                        "; restore a backup",
                    "damaged_store");
  }
  return FromRocks(status, "cannot open data directory " + dir_.path());
}

Status RocksJobStore::RefuseUnknownTables(const rocksdb::DBOptions& options) const {
  std::vector<std::string> names;
  const rocksdb::Status status = rocksdb::DB::ListColumnFamilies(options, dir_.path(), &names);
  if (!status.ok()) {
    return DataLoss("data directory " + dir_.path() + " is damaged: " + status.ToString() +
                        "; restore a backup",
                    "damaged_store");
  }
  for (const std::string& name : names) {
    bool known = false;
    for (size_t i = 0; i < kTableCount; ++i) {
      known = known || name == TableName(static_cast<Table>(i));
    }
    if (!known) {
      return dir_.NewerSchema(kSchemaVersion + 1).WithContext("table " + name);
    }
  }
  return OkStatus();
}

Status RocksJobStore::CheckSchema(bool create) {
  std::string value;
  const Status found = Get(Table::kMeta, kSchemaKey, &value);
  if (found.ok()) {
    DELAYD_ASSIGN_OR_RETURN(const uint64_t schema, DecodeNumber(kSchemaKey, value));
    return schema > kSchemaVersion ? dir_.NewerSchema(schema) : OkStatus();
  }
  if (found.code() != StatusCode::kNotFound) {
    return found;
  }
  if (!create) {
    return DataLoss("data directory " + dir_.path() +
                        " is damaged: its schema number is gone; restore a backup",
                    "damaged_store");
  }
  bool empty = true;
  const auto visit = [&empty](std::string_view, std::string_view) { return empty = false; };
  DELAYD_RETURN_IF_ERROR(Scan(Table::kMeta, {}, {}, visit));
  if (!empty) {
    return FailedPrecondition("data directory " + dir_.path() +
                                  " holds another program's RocksDB; set data_dir to an empty "
                                  "directory",
                              "data_dir_foreign");
  }
  Batch batch;
  batch.Put(Table::kMeta, kSchemaKey, EncodeNumber(kSchemaKey, kSchemaVersion));
  return Commit(batch);
}

Status RocksJobStore::CheckBatchNumber(bool accept_loss, RecoveryReport* report) {
  std::string value;
  const Status found = Get(Table::kMeta, kBatchNumberKey, &value);
  if (found.ok()) {
    DELAYD_ASSIGN_OR_RETURN(batch_number_, DecodeNumber(kBatchNumberKey, value));
  } else if (found.code() != StatusCode::kNotFound) {
    return found;
  }
  report->batch_number = batch_number_;
  report->batch_number_floor = floor_.Read();
  if (batch_number_ < report->batch_number_floor && !accept_loss) {
    return DataLoss("data directory " + dir_.path() + " is damaged: batch " +
                        std::to_string(report->batch_number_floor) +
                        " had been acknowledged and the store ends at batch " +
                        std::to_string(batch_number_) +
                        ", so its newest log was cut or lost; restore a backup, or give up what is "
                        "lost with delayctl recover --accept-loss",
                    "damaged_store");
  }
  return floor_.Set(batch_number_);
}

Status RocksJobStore::Get(Table table, std::string_view key, std::string* value) const {
  if (db_ == nullptr) {
    return FailedPrecondition("the store is closed", "store_closed");
  }
  const rocksdb::Status status =
      db_->Get(rocksdb::ReadOptions(), family(table), ToSlice(key), value);
  if (status.IsNotFound()) {
    return NotFound("no such row");
  }
  return FromRocks(status, TableName(table));
}

Status RocksJobStore::Scan(Table table,
                           std::string_view from,
                           std::string_view to,
                           const Visitor& visit) const {
  DELAYD_CHECK(!from.empty() || !NeedsScanStart(table));
  if (db_ == nullptr) {
    return FailedPrecondition("the store is closed", "store_closed");
  }
  // Bounds on both ends, so that no seek walks over tombstones that lie outside.
  const rocksdb::Slice lower = ToSlice(from);
  const rocksdb::Slice upper = ToSlice(to);
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = to.empty() ? nullptr : &upper;
  const std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator(options, family(table)));
  for (row->Seek(lower); row->Valid(); row->Next()) {
    if (!visit(ToView(row->key()), ToView(row->value()))) {
      return OkStatus();
    }
  }
  return FromRocks(row->status(), TableName(table));
}

Status RocksJobStore::Commit(const Batch& batch) {
  if (db_ == nullptr) {
    return FailedPrecondition("the store is closed", "store_closed");
  }
  DELAYD_RETURN_IF_ERROR(stop_->Check());
  if (batch.empty()) {
    return OkStatus();
  }
  uint64_t number = batch_number_;
  write_batch_.Clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    const Batch::Op op = batch.op(i);
    const rocksdb::Status added =
        op.is_delete ? write_batch_.Delete(family(op.table), ToSlice(op.key))
                     : write_batch_.Put(family(op.table), ToSlice(op.key), ToSlice(op.value));
    DELAYD_CHECK(added.ok());
    if (op.table == Table::kMeta && op.key == kBatchNumberKey && !op.is_delete) {
      DELAYD_ASSIGN_OR_RETURN(number, DecodeNumber(op.key, op.value));
    }
  }
  // Counters of a thread are on by default and cost a few per cent of a commit.
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  rocksdb::WriteOptions options;
  options.sync = kSyncCommits;
  const rocksdb::Status status = db_->Write(options, &write_batch_);
  if (!status.ok()) {
    const Status failed = FromRocks(status, "commit failed, its outcome is unknown");
    stop_->Set(failed);
    return failed;
  }
  batch_number_ = number;
  floor_.Raise(number);
  return OkStatus();
}

Status RocksJobStore::Close() {
  if (db_ == nullptr) {
    return OkStatus();
  }
  Status result = stop_->Check();
  if (result.ok()) {
    result = FromRocks(db_->Flush(rocksdb::FlushOptions(), families_), "flush at close");
  }
  const Status closed = FromRocks(CloseDatabase(), "close");
  if (result.ok()) {
    result = closed;
  }
  if (result.ok()) {
    result = floor_.Set(batch_number_);
  }
  dir_.Unlock();
  return result;
}

rocksdb::Status RocksJobStore::CloseDatabase() {
  for (rocksdb::ColumnFamilyHandle* handle : families_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  families_.clear();
  const rocksdb::Status status = db_->Close();
  db_.reset();
  return status;
}

}  // namespace

StatusOr<std::unique_ptr<JobStore>> OpenRocksJobStore(const RocksJobStoreOptions& options,
                                                      RecoveryReport* report) {
  RecoveryReport unread;
  DELAYD_ASSIGN_OR_RETURN(DataDir dir, DataDir::Acquire(options.path));
  auto store = std::make_unique<RocksJobStore>(std::move(dir), std::make_shared<StopCause>());
  DELAYD_RETURN_IF_ERROR(store->Open(options, report == nullptr ? &unread : report));
  return std::unique_ptr<JobStore>(std::move(store));
}

}  // namespace delayd::storage
