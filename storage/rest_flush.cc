#include "storage/rest_flush.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/flush_now.h"
#include "storage/free_memory.h"

namespace delayd::storage {
namespace {

// A store still counts as at rest while it writes no more than bytes_min / kTrickle in a period.
constexpr uint64_t kTrickle = 8;

// A period is checked in this many steps, so that it begins soon after the end of a burst.
constexpr int kSteps = 4;

}  // namespace

RestFlush::RestFlush(rocksdb::DB* db,
                     const std::vector<rocksdb::ColumnFamilyHandle*>* families,
                     Options options,
                     std::function<bool()> has_room)
    : db_(db),
      families_(families),
      options_(options),
      has_room_(std::move(has_room)),
      wake_at_(options.bytes_min) {}

RestFlush::~RestFlush() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.Join();
}

void RestFlush::NoteBatch(const Batch& batch) {
  const uint64_t written = written_.load(std::memory_order_relaxed) + batch.bytes();
  written_.store(written, std::memory_order_relaxed);
  if (written < wake_at_.load(std::memory_order_relaxed)) {
    return;
  }
  if (!thread_.Start([this] { Run(); })) {
    wake_at_.store(written + options_.bytes_min, std::memory_order_relaxed);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    wake_at_.store(std::numeric_limits<uint64_t>::max(), std::memory_order_relaxed);
    wanted_ = true;
  }
  wake_.notify_one();
}

void RestFlush::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return wanted_ || ending_; });
    if (!AwaitRest(&lock)) {
      return;
    }
    lock.unlock();
    uint64_t left = BytesInMemory();
    const bool is_due = left >= options_.bytes_min && has_room_();
    const bool is_early = is_due && MergesLag(db_);
    if (is_due && !is_early) {
      FlushNow(db_, *families_).PermitUncheckedError();
      left = 0;
    }
    GiveBackFreeMemory();
    lock.lock();
    ++rests_;
    wanted_ = is_early;
    if (is_early) {
      continue;
    }
    // If much was left, as on a full disk, it looks again after another half of bytes_min.
    const uint64_t more = options_.bytes_min - std::min(left, options_.bytes_min / 2);
    wake_at_.store(written_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
}

// False when the store is being closed.
bool RestFlush::AwaitRest(std::unique_lock<std::mutex>* lock) {
  uint64_t before = written_.load(std::memory_order_relaxed);
  for (int steps = 0; steps < kSteps; ++steps) {
    if (wake_.wait_for(*lock, options_.period / kSteps, [this] { return ending_; })) {
      return false;
    }
    const uint64_t written = written_.load(std::memory_order_relaxed);
    if (written - before > options_.bytes_min / kTrickle) {
      before = written;
      steps = -1;  // start anew
    }
  }
  return true;
}

uint64_t RestFlush::BytesInMemory() const {
  uint64_t sum = 0;
  for (rocksdb::ColumnFamilyHandle* family : *families_) {
    uint64_t bytes = 0;
    db_->GetIntProperty(family, rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes);
    sum += bytes;
  }
  return sum;
}

}  // namespace delayd::storage
