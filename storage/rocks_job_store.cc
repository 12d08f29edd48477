#include <chrono>
#include <span>
#include <thread>

#include <rocksdb/iostats_context.h>
#include <rocksdb/perf_level.h>

#include "base/check.h"
#include "base/crash_point.h"
#include "storage/flush_now.h"
#include "storage/insert_plan.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_store.h"

namespace delayd::storage {
namespace {

#ifdef DELAYD_MUTANT_NO_SYNC
// A planted fault, compiled only into a test's own copy of this room: the power-loss test must
// notice it.
constexpr bool kSyncCommits = false;
#else
constexpr bool kSyncCommits = true;
#endif

}  // namespace

RocksJobStore::~RocksJobStore() {
  if (db_ != nullptr) {
    // As after a crash: rows that were not flushed are in the log.
    CloseDatabase().PermitUncheckedError();
  }
}

Status RocksJobStore::Get(Table table, std::string_view key, std::string* value) const {
  return db_ == nullptr ? StoreClosed()
                        : RocksReader(db_.get(), &families_, nullptr).Get(table, key, value);
}

Status RocksJobStore::Scan(Table table,
                           std::string_view from,
                           std::string_view to,
                           const Visitor& visit) const {
  return db_ == nullptr ? StoreClosed()
                        : RocksReader(db_.get(), &families_, nullptr).Scan(table, from, to, visit);
}

Status RocksJobStore::ScanAhead(Table table,
                                std::string_view from,
                                std::string_view to,
                                const Visitor& visit) const {
  // Skipping one takes 0.4 us; reading a row by itself costs 2.
  constexpr uint64_t kDeletedRowsMax = 8;
  return db_ == nullptr ? StoreClosed()
                        : RocksReader(db_.get(), &families_, nullptr)
                              .Scan(table, from, to, visit, kDeletedRowsMax);
}

// The number that the batch contains, or else that of the last batch.
StatusOr<uint64_t> RocksJobStore::NumberIn(const Batch& batch,
                                           std::span<const WriteOrder::Row> rows) const {
  uint64_t number = batch_number_;
  for (const WriteOrder::Row& row : rows) {
    const Batch::Op op = batch.op(row.index);
    if (op.table != Table::kMeta) {
      break;  // kMeta comes first
    }
    if (op.key == kBatchNumberKey && !op.is_delete) {
      DELAYD_ASSIGN_OR_RETURN(number, DecodeNumber(op.key, op.value));
    }
  }
  return number;
}

// Writes to the log, durably, and to the memtables.
Status RocksJobStore::Write(const Batch& batch,
                            std::span<const WriteOrder::Row> rows,
                            const OnDurable& on_durable) {
  rocksdb::WriteBatch write_batch(RepOf(batch, rows, family_ids_));
  // RocksDB's thread counters are on by default and cost a few per cent of a commit, so only one
  // commit in eight is measured.
  const bool measured = commits_++ % 8 == 0;
  rocksdb::SetPerfLevel(measured ? rocksdb::PerfLevel::kEnableTimeExceptForMutex
                                 : rocksdb::PerfLevel::kDisable);
  rocksdb::get_iostats_context()->fsync_nanos = 0;
  rocksdb::WriteOptions options;
  options.sync = kSyncCommits;
  options.no_slowdown = true;  // instead of waiting, it says that it is incomplete
  const auto bytes_a_second = [this] {
    uint64_t rate = 0;
    db_->GetIntProperty(rocksdb::DB::Properties::kActualDelayedWriteRate, &rate);
    return rate;
  };
  const auto rest = [this](std::chrono::microseconds step) {
    // The merge for which writes wait may be refused only now, and nobody else lifts the limits.
    write_limits_->Look();
    std::this_thread::sleep_for(step);
  };
  using Clock = std::chrono::steady_clock;
  allowance_.RestBeforeFirstTry(Clock::now(), bytes_a_second, rest);
  Clock::time_point begun;
  const auto write = [&] {
    begun = Clock::now();
    const InsertPlan plan(rows, on_durable);
    return db_->Write(options, &write_batch);
  };
  int tries = 1;
  rocksdb::Status status = write();
  for (; status.IsIncomplete(); ++tries, status = write()) {
    RestBeforeTry(tries, batch.bytes(), bytes_a_second, rest);
  }
  allowance_.Wrote(tries, begun, write_batch.GetDataSize());
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);  // off for this thread's other work
  if (!status.ok()) {
    const Status failed = FromRocks(status, "commit failed, its outcome is unknown");
    stop_->Set(failed);
    return failed;
  }
  if (measured) {
    const std::scoped_lock lock(fsync_mutex_);
    fsync_us_.Observe(rocksdb::get_iostats_context()->fsync_nanos / 1000);
  }
  return OkStatus();
}

Status RocksJobStore::Commit(const Batch& batch, const OnDurable& on_durable) {
  if (db_ == nullptr) {
    return StoreClosed();
  }
  DELAYD_RETURN_IF_ERROR(Check());
  if (batch.empty()) {
    return OkStatus();
  }
  // In the order of the memtables: each insert begins where the last one ended.
  const std::span<const WriteOrder::Row> rows = write_order_.Of(batch);
  DELAYD_ASSIGN_OR_RETURN(const uint64_t number, NumberIn(batch, rows));
  DELAYD_RETURN_IF_ERROR(Write(batch, rows, on_durable));
  DELAYD_CRASH_POINT("store/written");
  batch_number_ = number;
  floor_.Raise(number);
  if (batch.deletes() > 0) {  // most batches are enqueues
    for (const auto& sweeper : sweepers_) {
      sweeper->NoteBatch(batch);
    }
  }
  rest_flush_->NoteBatch(batch);
  if (merge_room_->TakeChange()) {
    write_limits_->Look();
  }
  return OkStatus();
}

Status RocksJobStore::Check() {
  // Otherwise a replaced directory would be noticed only when a memtable is full. This check comes
  // first, since it is the cause of the errors that RocksDB's own threads then run into.
  Status status = same_directory_.Check();
  if (!status.ok()) {
    stop_->Set(status);
    return status;
  }
  return stop_->Check();
}

Status RocksJobStore::Close() {
  if (db_ == nullptr) {
    return OkStatus();
  }
  sweepers_.clear();
  rest_flush_.reset();
  Status result = Check();
  DELAYD_CRASH_POINT("close/before_flush");
  if (result.ok()) {
    result = FromRocks(FlushNow(db_.get(), families_), "flush at close");
  }
  DELAYD_CRASH_POINT("close/flushed");
  const Status closed = FromRocks(CloseDatabase(), "close");
  if (result.ok()) {
    result = closed;
  }
  DELAYD_CRASH_POINT("close/before_floor");
  if (result.ok()) {
    result = floor_.Set(batch_number_);
  }
  DELAYD_CRASH_POINT("close/after_floor");
  dir_.Unlock();
  return result;
}

rocksdb::Status RocksJobStore::CloseDatabase() {
  sweepers_.clear();
  rest_flush_.reset();
  for (rocksdb::ColumnFamilyHandle* handle : families_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  families_.clear();
  const rocksdb::Status status = db_->Close();
  db_.reset();
  return status;
}

}  // namespace delayd::storage
