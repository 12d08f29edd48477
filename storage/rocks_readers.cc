// Reading: from a live store, from a snapshot of it, and from a directory nobody has open.
#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "storage/cut_view.h"
#include "storage/recovery.h"
#include "storage/rocks_options.h"
#include "storage/rocks_store.h"
#include "storage/store_env.h"

namespace delayd::storage {
namespace {

class SnapshotReader final : public JobReader {
 public:
  SnapshotReader(rocksdb::DB* db, const std::vector<rocksdb::ColumnFamilyHandle*>* families)
      : db_(db), snapshot_(db->GetSnapshot()), reader_(db, families, snapshot_) {}

  ~SnapshotReader() override { db_->ReleaseSnapshot(snapshot_); }

  SnapshotReader(const SnapshotReader&) = delete;
  SnapshotReader& operator=(const SnapshotReader&) = delete;

  Status Get(Table table, std::string_view key, std::string* value) const override {
    return reader_.Get(table, key, value);
  }

  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return reader_.Scan(table, from, to, visit);
  }

 private:
  rocksdb::DB* db_;
  const rocksdb::Snapshot* snapshot_;
  RocksReader reader_;
};

class ReadOnlyStore final : public JobReader {
 public:
  explicit ReadOnlyStore(DataDir dir) : lock_(std::move(dir)), dir_(*lock_) {}

  // `dir` is locked, and must outlive this.
  explicit ReadOnlyStore(const DataDir* dir) : dir_(*dir) {}

  ~ReadOnlyStore() override {
    for (rocksdb::ColumnFamilyHandle* handle : families_) {
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
  }

  ReadOnlyStore(const ReadOnlyStore&) = delete;
  ReadOnlyStore& operator=(const ReadOnlyStore&) = delete;

  Status Open(const RocksJobStoreOptions& options, bool was_complete, RecoveryReport* report) {
    DELAYD_RETURN_IF_ERROR(RecoverLogs(
        dir_.path(), options.accept_loss ? LogRepair::kShowLoss : LogRepair::kLookOnly, report));
    // Shows only what the scan found to be whole.
    const auto view = NewCutView(options.env, dir_.path(), *report, options.accept_loss);
    env_ = NewStoreEnv(view.get(), dir_.path(), options.removal_step_bytes);
    const rocksdb::DBOptions db_options = MakeDbOptions(options, env_.get());
    DELAYD_RETURN_IF_ERROR(CheckTables(db_options, dir_, report->manifest));
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(
        db_options, dir_.path(), MakeColumnFamilies(options), &families_, &db);
    db_.reset(db);
    if (MissingLog(status).value_or(report->oldest_log_needed) < report->oldest_log_needed) {
      return StaleNote();
    }
    DELAYD_RETURN_IF_ERROR(
        FromRocks(status, TornManifest(*report) + "cannot read data directory " + dir_.path()));
    const RocksReader opened(db_.get(), &families_, nullptr);
    // First, because if schema and batches are both lost its message says which batch is missing.
    DELAYD_RETURN_IF_ERROR(
        CheckBatchNumber(opened, dir_.path(), was_complete, options.accept_loss, report));
    return CheckSchema(opened, dir_, !was_complete || options.accept_loss).status();
  }

  Status Get(Table table, std::string_view key, std::string* value) const override {
    return RocksReader(db_.get(), &families_, nullptr).Get(table, key, value);
  }

  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return RocksReader(db_.get(), &families_, nullptr).Scan(table, from, to, visit);
  }

 private:
  // Then RocksDB's error is a consequence of that: it may expect files of an earlier state.
  static std::string TornManifest(const RecoveryReport& report) {
    const auto cut = std::ranges::find(report.cuts, report.manifest, &RecoveryReport::Cut::file);
    return cut == report.cuts.end() ? ""
                                    : report.manifest + " ends within a record, at byte " +
                                          std::to_string(cut->offset) + ", and without it: ";
  }

  // The case in which RocksJobStore::OpenDatabase opens again without verifying the logs; 7.8.3
  // does not survive that in a read-only open.
  Status StaleNote() const {
    return FailedPrecondition("the MANIFEST of data directory " + dir_.path() +
                                  " notes a log that has been flushed and removed: nothing is "
                                  "lost; start the daemon once, which erases the note",
                              "stale_log_note");
  }

  std::optional<DataDir> lock_;  // released last
  const DataDir& dir_;
  std::unique_ptr<rocksdb::Env> env_;  // outlives db_
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

}  // namespace

Status RocksReader::Get(Table table, std::string_view key, std::string* value) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  const rocksdb::Status status = db_->Get(options, family(table), ToSlice(key), value);
  if (status.IsNotFound()) {
    return NotFound("no such row");
  }
  return FromRocks(status, TableName(table));
}

Status RocksReader::Scan(Table table,
                         std::string_view from,
                         std::string_view to,
                         const JobReader::Visitor& visit,
                         uint64_t deleted_rows_max) const {
  DELAYD_CHECK(!from.empty() || !NeedsScanStart(table));
  // Bounds on both ends, so that no seek walks over tombstones outside the range.
  const rocksdb::Slice lower = ToSlice(from);
  const rocksdb::Slice upper = ToSlice(to);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  options.fill_cache = false;
  options.max_skippable_internal_keys = deleted_rows_max;
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = to.empty() ? nullptr : &upper;
  const std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator(options, family(table)));
  for (row->Seek(lower); row->Valid(); row->Next()) {
    if (!visit(row->key().ToStringView(), row->value().ToStringView())) {
      return OkStatus();
    }
  }
  return row->status().IsIncomplete() ? OkStatus() : FromRocks(row->status(), TableName(table));
}

StatusOr<std::unique_ptr<JobReader>> RocksJobStore::Snapshot() const {
  if (db_ == nullptr) {
    return StoreClosed();
  }
  return std::unique_ptr<JobReader>(std::make_unique<SnapshotReader>(db_.get(), &families_));
}

StatusOr<std::unique_ptr<JobReader>> SnapshotRocksJobStore(const JobStore& store) {
  return AsRocks(store).Snapshot();
}

Status LookBeforeOpen(const DataDir& dir,
                      const RocksJobStoreOptions& options,
                      bool was_complete,
                      RecoveryReport* report) {
  RecoveryReport unread;
  const Status look =
      ReadOnlyStore(&dir).Open(options, was_complete, report == nullptr ? &unread : report);
  // The real open erases the stale entry.
  return look.reason() == "stale_log_note" ? OkStatus() : look;
}

StatusOr<std::unique_ptr<JobReader>> OpenRocksJobReader(const RocksJobStoreOptions& options,
                                                        RecoveryReport* report) {
  RecoveryReport unread;
  DELAYD_ASSIGN_OR_RETURN(DataDir dir, DataDir::Acquire(options.path, /*must_exist=*/true));
  auto reader = std::make_unique<ReadOnlyStore>(std::move(dir));
  DELAYD_RETURN_IF_ERROR(
      reader->Open(options, /*was_complete=*/true, report == nullptr ? &unread : report));
  return std::unique_ptr<JobReader>(std::move(reader));
}

}  // namespace delayd::storage
