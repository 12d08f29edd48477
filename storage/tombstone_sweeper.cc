#include "storage/tombstone_sweeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/coding.h"
#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::storage {
namespace {

// Fewer than one dead row in so many living ones is passed over without being noticed.
constexpr uint64_t kLivingPerDelete = 4;

// A mass cancel that pauses for so long is over.
constexpr std::chrono::milliseconds kQuiet{500};
constexpr uint64_t kMinPerRest = 50;

}  // namespace

TombstoneSweeper::TombstoneSweeper(rocksdb::DB* db,
                                   const std::vector<rocksdb::ColumnFamilyHandle*>* families,
                                   uint64_t deletes_min)
    : db_(db),
      families_(families),
      deletes_min_(deletes_min),
      rest_min_(deletes_min / kMinPerRest),
      next_rest_(rest_min_) {}

TombstoneSweeper::~TombstoneSweeper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) {
    db_->DisableManualCompaction();
    thread_.join();
    db_->EnableManualCompaction();
  }
}

void DeletedTimers::Add(std::string_view key) {
  if (count_ == 0 || key < first_) {
    first_ = key;
  }
  if (count_ == 0 || key > last_) {
    last_ = key;
  }
  if (count_++ % kSampleEvery == 0) {
    sample_.push_back(ByteReader(key).U64());
  }
}

void DeletedTimers::Forget(uint64_t mark) {
  if (std::erase_if(sample_, [mark](uint64_t key) { return key < mark; }) == 0) {
    return;
  }
  if (sample_.empty()) {
    *this = {};
    return;
  }
  count_ = sample_.size() * kSampleEvery;
  std::string from;
  AppendU64(&from, mark);
  first_ = std::max(first_, from);
}

void TombstoneSweeper::MoveMark(const Batch& batch) {
  // The mark stands behind the acks that it moved over.
  for (size_t i = batch.size(); i-- > 0;) {
    const Batch::Op op = batch.op(i);
    if (op.table == Table::kMeta && op.key == kLowWaterMarkKey && !op.is_delete) {
      if (const auto mark = DecodeNumber(op.key, op.value); mark.ok()) {
        mark_ = *mark;
      }
      break;
    }
  }
}

void TombstoneSweeper::NoteBatch(const Batch& batch) {
  const std::lock_guard lock(mutex_);
  MoveMark(batch);
  const uint64_t before = deletes_.count();
  for (size_t i = 0; i < batch.size(); ++i) {
    const Batch::Op op = batch.op(i);
    if (op.table == Table::kTimers && op.is_delete && ByteReader(op.key).U64() >= mark_) {
      deletes_.Add(op.key);
    }
  }
  if (wanted_ || deletes_.count() < next_rest_) {
    return;  // one is under way, whose thread looks at these after it; or there are few
  }
  if (deletes_.count() >= std::max(next_look_, deletes_min_)) {
    wanted_ = AreWorthSweeping(deletes_min_);
    next_look_ = wanted_ ? 0 : deletes_.count() + deletes_.count() / 8;
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Run(); });
  }
  if (wanted_ || before < next_rest_) {
    wake_.notify_one();
  }
}

// With the lock held: at least `min` of them, and a good part of all rows.
bool TombstoneSweeper::AreWorthSweeping(uint64_t min) {
  deletes_.Forget(mark_);
  if (deletes_.count() < min) {
    return false;
  }
  uint64_t living = 0;
  db_->GetIntProperty((*families_)[static_cast<size_t>(Table::kTimers)],
                      rocksdb::DB::Properties::kEstimateNumKeys,
                      &living);
  return deletes_.count() >= living / kLivingPerDelete;
}

void TombstoneSweeper::Run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (!wanted_) {
      AwaitQuiet(&lock);
      continue;
    }
    const DeletedTimers deletes = std::exchange(deletes_, {});
    next_rest_ = rest_min_;
    lock.unlock();
    Sweep(deletes);
    lock.lock();
    // Those that came meanwhile may have been the last for a long time.
    wanted_ = AreWorthSweeping(deletes_min_);
    ++done_;
  }
}

// Until a sweep is wanted; wants one itself when no more deletes come.
void TombstoneSweeper::AwaitQuiet(std::unique_lock<std::mutex>* lock) {
  const auto is_called = [this] { return wanted_ || ending_; };
  wake_.wait(*lock, [&] { return is_called() || deletes_.count() >= next_rest_; });
  const uint64_t seen = deletes_.count();
  if (is_called() || wake_.wait_for(*lock, kQuiet, is_called) || deletes_.count() != seen) {
    return;
  }
  wanted_ = AreWorthSweeping(rest_min_);
  next_rest_ = std::max(rest_min_, deletes_.count() + deletes_.count() / 8 + 1);
}

void TombstoneSweeper::Sweep(const DeletedTimers& deletes) {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;  // flushes and compactions go on beside it
  // The tombstones may have come to the last level by a mere move of their file.
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  const rocksdb::Slice first(deletes.first());
  const rocksdb::Slice last(deletes.last());
  db_->CompactRange(options, (*families_)[static_cast<size_t>(Table::kTimers)], &first, &last)
      .PermitUncheckedError();
  // Small rows, in an order of its own.
  db_->CompactRange(options, (*families_)[static_cast<size_t>(Table::kByQueue)], nullptr, nullptr)
      .PermitUncheckedError();
}

}  // namespace delayd::storage
