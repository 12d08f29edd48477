#include "storage/tombstone_sweeper.h"

#include <utility>

#include "base/coding.h"
#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::storage {
namespace {

// Fewer than one dead row in so many living ones is passed over without being noticed.
constexpr uint64_t kLivingPerDelete = 4;

}  // namespace

TombstoneSweeper::TombstoneSweeper(rocksdb::DB* db,
                                   const std::vector<rocksdb::ColumnFamilyHandle*>* families,
                                   uint64_t deletes_min)
    : db_(db), families_(families), deletes_min_(deletes_min), next_look_(deletes_min) {}

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

void TombstoneSweeper::NoteBatch(const Batch& batch) {
  // The mark stands behind the acks that it moved over.
  for (size_t i = batch.size(); i-- > 0;) {
    const Batch::Op op = batch.op(i);
    if (op.table == Table::kMeta && op.key == kLowWaterMarkKey && !op.is_delete) {
      if (const auto mark = DecodeNumber(op.key, op.value); mark.ok()) {
        low_water_mark_.clear();
        AppendU64(&low_water_mark_, *mark);
      }
      break;
    }
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    const Batch::Op op = batch.op(i);
    if (op.table != Table::kTimers || !op.is_delete || op.key <= low_water_mark_) {
      continue;
    }
    if (deletes_ == 0) {
      deleted_ = {std::string(op.key), std::string(op.key)};
    } else if (op.key < deleted_.first) {
      deleted_.first = op.key;
    } else if (op.key > deleted_.last) {
      deleted_.last = op.key;
    }
    ++deletes_;
  }
  if (deletes_ < next_look_ || !WorthSweeping()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (wanted_) {
      return;  // one is under way; these are swept after it
    }
    range_ = std::exchange(deleted_, {});
    wanted_ = true;
  }
  deletes_ = 0;
  next_look_ = deletes_min_;
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Run(); });
  }
  wake_.notify_one();
}

bool TombstoneSweeper::WorthSweeping() {
  next_look_ = deletes_ + deletes_min_ / 10 + 1;
  uint64_t living = 0;
  db_->GetIntProperty((*families_)[static_cast<size_t>(Table::kTimers)],
                      rocksdb::DB::Properties::kEstimateNumKeys,
                      &living);
  return deletes_ >= living / kLivingPerDelete;
}

void TombstoneSweeper::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return wanted_ || ending_; });
    if (ending_) {
      return;
    }
    const Range range = std::exchange(range_, {});
    lock.unlock();
    Sweep(range);
    lock.lock();
    wanted_ = false;
    ++done_;
  }
}

void TombstoneSweeper::Sweep(const Range& range) {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;  // flushes and compactions go on beside it
  // The tombstones may have come to the last level by a mere move of their file.
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  const rocksdb::Slice first(range.first);
  const rocksdb::Slice last(range.last);
  db_->CompactRange(options, (*families_)[static_cast<size_t>(Table::kTimers)], &first, &last)
      .PermitUncheckedError();
  // Small rows, in an order of its own.
  db_->CompactRange(options, (*families_)[static_cast<size_t>(Table::kByQueue)], nullptr, nullptr)
      .PermitUncheckedError();
}

}  // namespace delayd::storage
