// Opening a store: the directory, its logs, RocksDB, the schema and the batch number, in that
// order.
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crash_point.h"
#include "base/size_text.h"
#include "storage/cut_view.h"
#include "storage/disk_room.h"
#include "storage/files.h"
#include "storage/flush_room.h"
#include "storage/gradual_removal.h"
#include "storage/keys.h"
#include "storage/posix_error.h"
#include "storage/record.h"
#include "storage/recovery.h"
#include "storage/rocks_options.h"
#include "storage/rocks_store.h"
#include "storage/store_env.h"

namespace delayd::storage {
#ifdef DELAYD_CRASH_POINTS
namespace {

// Gives the storm crash points in RocksDB's own threads.
class CrashInBackground final : public rocksdb::EventListener {
 public:
  void OnMemTableSealed(const rocksdb::MemTableInfo& /*info*/) override {
    DELAYD_CRASH_POINT("rocksdb/log_turned");
  }

  void OnFlushBegin(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override {
    DELAYD_CRASH_POINT("rocksdb/flush_begins");
  }

  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& /*info*/) override {
    DELAYD_CRASH_POINT("rocksdb/table_written");
  }

  void OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override {
    DELAYD_CRASH_POINT("rocksdb/flushed");
  }

  void OnCompactionBegin(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo& /*info*/) override {
    DELAYD_CRASH_POINT("rocksdb/compaction_begins");
  }

  void OnCompactionCompleted(rocksdb::DB* /*db*/,
                             const rocksdb::CompactionJobInfo& /*info*/) override {
    DELAYD_CRASH_POINT("rocksdb/compacted");
  }

  void OnTableFileDeleted(const rocksdb::TableFileDeletionInfo& /*info*/) override {
    DELAYD_CRASH_POINT("rocksdb/table_deleted");
  }
};

}  // namespace
#endif

namespace {

// What RocksDB writes at a start. With less room each start fails half-way and leaves more files
// behind.
constexpr uint64_t kStartBytesMin = uint64_t{1} << 20;

// A recovery copies logs aside and flushes what is left of them. If it ran out of room half-way,
// the store would stay shut and the loss would go unreported.
Status CheckRoomToRecover(const std::string& data_dir, rocksdb::Env* env) {
  DELAYD_ASSIGN_OR_RETURN(const FlushRoom room, AskFlushRoom(data_dir, env));
  const uint64_t needed = 2 * room.needed;
  if (room.free >= needed) {
    return OkStatus();
  }
  return ResourceExhausted("nothing was changed: the disk of " + data_dir + " is full, " +
                               FormatSize(room.free) + " are left and a recovery writes up to " +
                               FormatSize(needed) + "; free some space",
                           "disk_full");
}

}  // namespace

Status RocksJobStore::Open(const RocksJobStoreOptions& options, RecoveryReport* report) {
  DELAYD_RETURN_IF_ERROR(same_directory_.Check());
  rocksdb::Env* const machine = options.env != nullptr ? options.env : rocksdb::Env::Default();
  merge_room_ =
      std::make_shared<MergeRoom>(machine->GetFileSystem(), dir_.path(), options.wal_bytes_max);
  env_ = NewStoreEnv(machine, dir_.path(), options.removal_step_bytes, merge_room_);
  DELAYD_ASSIGN_OR_RETURN(const bool holds_store, HoldsStore(options));
  DELAYD_RETURN_IF_ERROR(MakeRoom(options, holds_store));
  if (holds_store) {
    DELAYD_RETURN_IF_ERROR(LookFirst(options));
  }
  DELAYD_RETURN_IF_ERROR(RecoverLogs(
      dir_.path(), options.accept_loss ? LogRepair::kAcceptLoss : LogRepair::kTornTails, report));
  DELAYD_CRASH_POINT("open/logs_recovered");
  DELAYD_RETURN_IF_ERROR(floor_.Open());
  DELAYD_RETURN_IF_ERROR(OpenDatabase(options, !holds_store, report));
  DELAYD_CRASH_POINT("open/database_open");
  const RocksReader opened(db_.get(), &families_, nullptr);
  // In a store without tables, the lost logs include its very first batch.
  const bool may_lack_schema = !holds_store || options.accept_loss;
  DELAYD_ASSIGN_OR_RETURN(const bool has_schema, CheckSchema(opened, dir_, may_lack_schema));
  DELAYD_RETURN_IF_ERROR(has_schema ? OkStatus() : MakeSchema());
  DELAYD_RETURN_IF_ERROR(
      CheckBatchNumber(opened, dir_.path(), holds_store, options.accept_loss, report));
  batch_number_ = report->batch_number;
  DELAYD_RETURN_IF_ERROR(floor_.Set(batch_number_));
  DELAYD_CRASH_POINT("open/checked");
  report->made_store = !holds_store;
  return holds_store ? OkStatus() : WriteFormatFile(dir_.path());
}

// Neither a recovery nor cutting a torn record can mend a damaged table file or MANIFEST: if one is
// damaged, nothing is given up and nothing is cut.
Status RocksJobStore::LookFirst(const RocksJobStoreOptions& options) const {
  DELAYD_ASSIGN_OR_RETURN(const bool is_torn, ManifestIsTorn(dir_.path()));
  if (options.accept_loss || is_torn) {
    DELAYD_RETURN_IF_ERROR(
        LookBeforeOpen(dir_, options, /*was_complete=*/true).WithContext("nothing was changed"));
  }
  return options.accept_loss ? CheckRoomToRecover(dir_.path(), env_.get()) : OkStatus();
}

rocksdb::Status RocksJobStore::TryOpen(const RocksJobStoreOptions& options,
                                       bool create,
                                       bool verify_logs) {
  rocksdb::DBOptions db_options = MakeDbOptions(options, env_.get());
  db_options.create_if_missing = create;
  db_options.create_missing_column_families = create;
  db_options.track_and_verify_wals_in_manifest = verify_logs;
  db_options.listeners.push_back(merge_room_);  // first: clears errors that need not stop the store
  db_options.listeners.push_back(std::make_shared<StopOnBackgroundError>(stop_));
#ifdef DELAYD_CRASH_POINTS
  db_options.listeners.push_back(std::make_shared<CrashInBackground>());
#endif
  rocksdb::DB* db = nullptr;
  rocksdb::Status status = WithoutProbe(
      rocksdb::DB::Open(db_options, dir_.path(), MakeColumnFamilies(options), &families_, &db));
  db_.reset(db);
  if (status.ok()) {
    std::ranges::transform(
        families_, family_ids_.begin(), [](const auto* family) { return family->GetID(); });
    write_limits_.emplace(db_.get(), &families_, merge_room_.get());
    MakeSweepers(options.sweep_deletes_min);
    rest_flush_ = std::make_unique<RestFlush>(
        db_.get(),
        &families_,
        RestFlush::Options{.bytes_min = options.rest_bytes_min, .period = options.rest_period},
        [this] {
          const StatusOr<FlushRoom> room = AskFlushRoom(dir_.path(), env_.get());
          return room.ok() && room->is_enough();
        });
  }
  return status;
}

// One sweeper per table: rows that lie together in one table are far apart in another.
void RocksJobStore::MakeSweepers(uint64_t deletes_min) {
  for (const Table table : {Table::kTimers, Table::kByQueue, Table::kDead}) {
    sweepers_.push_back(std::make_unique<TombstoneSweeper>(
        db_.get(),
        families_[static_cast<size_t>(table)],
        table,
        deletes_min,
        merge_room_.get(),
        &sweep_turn_,
        [this](Table of, std::span<const KeyRange> ranges) { return EstimateRows(of, ranges); }));
  }
}

// recovery.cc checks the last batch in the logs against the floor. If the logs hold none (after an
// orderly shutdown, or because the newest was emptied), this checks the tables instead. An open for
// writing would go past the number of that log, and the whole log, put back later, would be
// ignored.
Status RocksJobStore::CheckEndOfTables(const RocksJobStoreOptions& options,
                                       RecoveryReport* report) const {
  const rocksdb::DBOptions db_options = MakeDbOptions(options, env_.get());
  const std::vector<rocksdb::ColumnFamilyDescriptor> meta = {MakeColumnFamilies(options).front()};
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::OpenForReadOnly(db_options, dir_.path(), meta, &families, &opened);
  const std::unique_ptr<rocksdb::DB> db(opened);
  if (MissingLog(status).has_value()) {
    return OkStatus();  // the real open tells whether it is missed
  }
  DELAYD_RETURN_IF_ERROR(FromRocks(status, "cannot open data directory " + dir_.path()));
  const Status checked = CheckBatchNumber(RocksReader(db.get(), &families, nullptr),
                                          dir_.path(),
                                          /*was_complete=*/true,
                                          /*accept_loss=*/false,
                                          report);
  db->DestroyColumnFamilyHandle(families.front()).PermitUncheckedError();
  return checked;
}

Status RocksJobStore::OpenDatabase(const RocksJobStoreOptions& options,
                                   bool create,
                                   RecoveryReport* report) {
  if (!create) {
    DELAYD_RETURN_IF_ERROR(CheckTables(MakeDbOptions(options, env_.get()), dir_, report->manifest));
  }
  if (!create && !options.accept_loss && report->logs_are_empty) {
    DELAYD_RETURN_IF_ERROR(CheckEndOfTables(options, report));
  }
  // After an accepted loss the dropped logs would be reported as missing.
  rocksdb::Status status = TryOpen(options, create, !options.accept_loss);
  // After a failed MANIFEST write 7.8.3 can note a log in the next MANIFEST that it has already
  // flushed and removed, and then misses it.
  const std::optional<uint64_t> missing = MissingLog(status);
  if (missing.has_value() && *missing < report->oldest_log_needed) {
    report->stale_log_note = missing;
    status = TryOpen(options, create, false);
  }
  if (status.IsInvalidArgument()) {
    // A complete store lacks a file or a table.
    return DataLoss("data directory " + dir_.path() + " is damaged: " + status.ToString() +
                        "; restore a backup",
                    "damaged_store");
  }
  return IsNoRoom(status) ? NoRoomToOpen(options, status)
                          : FromRocks(status, "cannot open data directory " + dir_.path());
}

// The next successful start removes leftovers; but on a full disk each failed start leaves more of
// them and eats up the space that was freed for it. A table file that the MANIFEST does not know is
// safe to remove if the MANIFEST was not cut: then all its tables are there, and either the logs
// continue where it ends, or the store has the last batch that BATCH records.
void RocksJobStore::RemoveLeftovers(const RocksJobStoreOptions& options) const {
  RecoveryReport look;
  if (!LookBeforeOpen(dir_, options, /*was_complete=*/true, &look).ok()) {
    return;
  }
  const auto remove = [this](const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      ::unlink((dir_.path() + "/" + name).c_str());
    }
  };
  remove(look.leftover_tables);
  if (look.batch_number > 0 && look.batch_number == look.batch_number_floor) {
    remove(look.unknown_tables);
  }
  remove(look.flushed_logs);
  if (StatusOr<std::vector<std::string>> trash = ListDirectory(dir_.path()); trash.ok()) {
    std::erase_if(*trash, [](const std::string& name) { return !name.ends_with(kTrashEnding); });
    remove(*trash);
  }
}

// If there is too little room for what the logs hold, leftovers are removed first: a start writes
// tables before it removes them. Space allocated beyond the end of a log holds no data, so it is
// released even before a recovery.
Status RocksJobStore::MakeRoom(const RocksJobStoreOptions& options, bool holds_store) const {
  DELAYD_ASSIGN_OR_RETURN(FlushRoom room, AskFlushRoom(dir_.path(), env_.get()));
  if (holds_store && !room.is_enough()) {
    GiveBackAllocated(dir_.path());
    DELAYD_ASSIGN_OR_RETURN(room, AskFlushRoom(dir_.path(), env_.get()));
  }
  if (holds_store && !options.accept_loss && !room.is_enough()) {
    RemoveLeftovers(options);
    DELAYD_ASSIGN_OR_RETURN(room, AskFlushRoom(dir_.path(), env_.get()));
  }
  if (room.free >= kStartBytesMin) {
    return OkStatus();  // worth a try: a start mostly needs less than it might
  }
  return ResourceExhausted("the disk of " + dir_.path() + " is full, " + FormatSize(room.free) +
                               " are left and a start needs " + FormatSize(kStartBytesMin) +
                               std::string(kSpaceCure),
                           "disk_full");
}

Status RocksJobStore::NoRoomToOpen(const RocksJobStoreOptions& options,
                                   const rocksdb::Status& status) const {
  GiveBackAllocated(dir_.path());  // for the next start: df may have shown free space
  RemoveLeftovers(options);
  DELAYD_ASSIGN_OR_RETURN(const FlushRoom room, AskFlushRoom(dir_.path(), env_.get()));
  const std::string lack = room.is_enough()
                               ? WhyRefused(dir_.path(), room.free)
                               : "a start may write up to " + FormatSize(room.needed) +
                                     " there, and " + FormatSize(room.free) + " are left";
  return ResourceExhausted("cannot open data directory " + dir_.path() + ": " + status.ToString() +
                               "; " + lack + std::string(RoomCure(status)),
                           "disk_full");
}

Status RocksJobStore::OfAnotherProgram() const {
  return FailedPrecondition("data directory " + dir_.path() +
                                " holds another program's RocksDB; set data_dir to an empty "
                                "directory",
                            "data_dir_foreign");
}

namespace {

struct FoundTables {
  std::optional<std::string> missing;  // the name of one of ours
  std::vector<std::string> unknown;
};

StatusOr<FoundTables> FindTables(const rocksdb::DBOptions& options, const DataDir& dir) {
  FoundTables found;
  const rocksdb::Status status =
      rocksdb::DB::ListColumnFamilies(options, dir.path(), &found.unknown);
  DELAYD_RETURN_IF_ERROR(FromRocks(status, "cannot read data directory " + dir.path()));
  for (size_t i = 0; i < kTableCount; ++i) {
    const std::string_view name = TableName(static_cast<Table>(i));
    if (std::erase(found.unknown, name) == 0) {
      found.missing = name;
    }
  }
  return found;
}

}  // namespace

// Unknown tables belong to a newer version, and are refused. If one of ours is missing, the
// MANIFEST was cut between two of its records, which RocksDB does not notice.
Status CheckTables(const rocksdb::DBOptions& options,
                   const DataDir& dir,
                   const std::string& manifest) {
  DELAYD_ASSIGN_OR_RETURN(const FoundTables found, FindTables(options, dir));
  if (!found.unknown.empty()) {
    return dir.NewerSchema(kSchemaVersion + 1).WithContext("table " + found.unknown.front());
  }
  if (found.missing) {
    return DataLoss("data directory " + dir.path() + " is damaged: " + manifest +
                        " does not know table " + *found.missing +
                        ", so it was cut; restore a backup",
                    "damaged_store");
  }
  return OkStatus();
}

// For a directory without FORMAT but with changes in it. A store of ours has had all its tables
// since before its first change, and was complete before its first batch. In another program's
// store nothing is cut and no tables are made: that program could not open it again.
Status RocksJobStore::CheckOurs(const RocksJobStoreOptions& options) const {
  RecoveryReport look;
  const Status logs = RecoverLogs(
      dir_.path(), options.accept_loss ? LogRepair::kShowLoss : LogRepair::kLookOnly, &look);
  const bool logs_are_damaged = !logs.ok() && look.lost_batches > 0;
  DELAYD_RETURN_IF_ERROR(logs_are_damaged ? OkStatus() : logs);
  if (!look.holds_changes && !logs_are_damaged) {
    return OkStatus();
  }
  const auto view = NewCutView(options.env, dir_.path(), look, options.accept_loss);
  DELAYD_ASSIGN_OR_RETURN(const FoundTables found,
                          FindTables(MakeDbOptions(options, view.get()), dir_));
  if (found.missing || !found.unknown.empty()) {
    return OfAnotherProgram();
  }
  return logs_are_damaged ? FormatMissingToo(logs)
                          : LookBeforeOpen(dir_, options, /*was_complete=*/false);
}

// Leaves nothing behind in a directory that holds something else.
StatusOr<bool> RocksJobStore::HoldsStore(const RocksJobStoreOptions& options) const {
  StatusOr<bool> holds_store = dir_.HoldsStore();
  const Status ours = holds_store.ok() && !*holds_store ? CheckOurs(options) : holds_store.status();
  if (ours.reason() == "data_dir_foreign") {
    dir_.RemoveOwnLock();
  }
  DELAYD_RETURN_IF_ERROR(ours);
  return holds_store;
}

Status RocksJobStore::MakeSchema() {
  bool empty = true;
  const auto visit = [&empty](std::string_view, std::string_view) { return empty = false; };
  DELAYD_RETURN_IF_ERROR(Scan(Table::kMeta, {}, {}, visit));
  if (!empty) {
    return OfAnotherProgram();
  }
  Batch batch;
  batch.Put(Table::kMeta, kSchemaKey, EncodeNumber(kSchemaKey, kSchemaVersion));
  return Commit(batch);
}

namespace {

// A number that no recovery makes anew: without it nobody knows in which form the rows are, or how
// far the store had come.
StatusOr<uint64_t> ReadNeeded(const std::string& directory,
                              std::string_view key,
                              std::string_view value) {
  StatusOr<uint64_t> number = DecodeNumber(key, value);
  if (!number.ok()) {
    return number.status()
        .WithContext("data directory " + directory + " is damaged")
        .Followed("; no recovery mends this, restore a backup");
  }
  return number;
}

}  // namespace

StatusOr<bool> CheckSchema(const RocksReader& store, const DataDir& dir, bool may_be_missing) {
  std::string value;
  const Status found = store.Get(Table::kMeta, kSchemaKey, &value);
  if (found.code() == StatusCode::kNotFound && may_be_missing) {
    return false;
  }
  if (found.code() == StatusCode::kNotFound) {
    return DataLoss("data directory " + dir.path() +
                        " is damaged: its schema number, which its first log held, is gone; "
                        "restore a backup, or give up what is lost with delayctl recover "
                        "--accept-loss",
                    "damaged_store");
  }
  DELAYD_RETURN_IF_ERROR(found);
  DELAYD_ASSIGN_OR_RETURN(const uint64_t schema, ReadNeeded(dir.path(), kSchemaKey, value));
  if (schema > kSchemaVersion) {
    return dir.NewerSchema(schema);
  }
  return true;
}

Status CheckBatchNumber(const RocksReader& store,
                        const std::string& directory,
                        bool was_complete,
                        bool accept_loss,
                        RecoveryReport* report) {
  std::string value;
  const Status found = store.Get(Table::kMeta, kBatchNumberKey, &value);
  if (found.ok()) {
    DELAYD_ASSIGN_OR_RETURN(report->batch_number, ReadNeeded(directory, kBatchNumberKey, value));
  } else if (found.code() != StatusCode::kNotFound) {
    return found;
  }
  if (report->batch_number > 0 && !was_complete) {
    return FormatMissing(directory, "it holds jobs");
  }
  const std::optional<uint64_t> floor = BatchFloor(directory).Read();
  report->floor_unreadable = was_complete && !floor.has_value();
  report->batch_number_floor = std::max(report->batch_number_floor, floor.value_or(0));
  const bool may_lose = accept_loss && report->unknown_tables.empty();
  if (report->batch_number < report->batch_number_floor && !may_lose) {
    return EndsTooEarly(directory, *report);
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<JobStore>> OpenRocksJobStore(const RocksJobStoreOptions& options,
                                                      RecoveryReport* report) {
  RecoveryReport unread;
  DELAYD_ASSIGN_OR_RETURN(DataDir dir, DataDir::Acquire(options.path, options.must_exist));
  auto store = std::make_unique<RocksJobStore>(std::move(dir), std::make_shared<StopCause>());
  DELAYD_RETURN_IF_ERROR(store->Open(options, report == nullptr ? &unread : report));
  return std::unique_ptr<JobStore>(std::move(store));
}

}  // namespace delayd::storage
