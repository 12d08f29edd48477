#include "storage/tombstone_sweeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/coding.h"
#include "storage/flush_now.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_status.h"

namespace delayd::storage {
namespace {

// Fewer deleted rows than one per this many living ones are passed over at no noticeable cost.
constexpr uint64_t kLivingPerDelete = 4;
// While rows are still being deleted, another sweep would soon be due, and each rewrites the living
// rows. A scan takes little longer where one in two rows is deleted, if they are mixed.
constexpr uint64_t kLivingPerDeleteMeanwhile = 1;
// A compaction of a few rows rewrites the whole files that they lie in: if deleted rows are few
// among all rows, it takes this many times as many to be worth it.
constexpr uint64_t kMinPerPart = 10;

// A mass cancel that pauses for this long is over.
constexpr std::chrono::milliseconds kQuiet{500};
constexpr uint64_t kMinPerRest = 50;

// The pauses before asking whether the disk now has room for a refused sweep. They grow, since a
// sweep that still finds no room may write a lot before that shows.
constexpr std::chrono::milliseconds kNoRetry{0};
constexpr std::chrono::milliseconds kFirstRetry{1000};
constexpr std::chrono::milliseconds kLastRetry{10'000};

bool AreDense(uint64_t deletes, uint64_t living, bool is_quiet) {
  return deletes >= living / (is_quiet ? kLivingPerDelete : kLivingPerDeleteMeanwhile);
}

// What is not worth sweeping, or could not be swept, is looked at again at this count.
uint64_t WithSomeMore(uint64_t deletes) {
  return deletes + deletes / 8 + 1;
}

std::optional<size_t> PlaceOfDue(Table table) {
  switch (table) {
    case Table::kTimers:
      return 0;
    case Table::kByQueue:
      return sizeof(QueueId);
    default:
      return std::nullopt;
  }
}

}  // namespace

void DeletedRows::Add(std::string_view key) {
  if (count_ == 0 || key < first_) {
    first_ = key;
  }
  if (count_ == 0 || key > last_) {
    last_ = key;
  }
  if (count_++ % sample_every_ == 0) {
    sample_.emplace_back(key);
    if (sample_.size() > kSampleMax) {
      ThinSample();
    }
  }
}

// In the order in which the keys came, which says nothing about where they lie.
void DeletedRows::ThinSample() {
  for (size_t i = 0; 2 * i < sample_.size(); ++i) {
    sample_[i].swap(sample_[2 * i]);
  }
  sample_.resize((sample_.size() + 1) / 2);
  sample_every_ *= 2;
}

bool DeletedRows::IsPassed(std::string_view key, uint64_t mark) const {
  return due_at_ && ByteReader(key.substr(*due_at_)).U64() < mark;
}

void DeletedRows::Forget(uint64_t mark) {
  const auto is_passed = [&](const std::string& key) { return IsPassed(key, mark); };
  if (std::erase_if(sample_, is_passed) == 0) {
    return;
  }
  const std::string last = std::move(last_);
  CountSample();
  last_ = count_ == 0 ? "" : last;
}

void DeletedRows::CountSample() {
  sample_every_ = sample_.empty() ? kSampleEvery : sample_every_;
  count_ = sample_.size() * sample_every_;
  first_ = sample_.empty() ? "" : *std::ranges::min_element(sample_);
  last_ = sample_.empty() ? "" : *std::ranges::max_element(sample_);
}

void DeletedRows::Forget(const Part& part) {
  std::erase_if(sample_,
                [&](const std::string& key) { return part.first <= key && key <= part.last; });
  CountSample();
}

void DeletedRows::Add(DeletedRows others) {
  if (others.count_ == 0) {
    return;
  }
  while (sample_every_ < others.sample_every_) {
    ThinSample();
  }
  while (others.sample_every_ < sample_every_) {
    others.ThinSample();
  }
  first_ = count_ == 0 ? others.first_ : std::min(first_, others.first_);
  last_ = count_ == 0 ? others.last_ : std::max(last_, others.last_);
  count_ += others.count_;
  sample_.insert(sample_.end(), others.sample_.begin(), others.sample_.end());
  if (sample_.size() > kSampleMax) {
    ThinSample();
  }
}

std::vector<DeletedRows::Part> DeletedRows::Parts() const {
  std::vector<std::string> keys = sample_;
  std::ranges::sort(keys);
  const size_t count = std::clamp<size_t>(keys.size() / kSampleAPart, 1, kPartsMax);
  std::vector<Part> parts;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * keys.size() / count;
    const size_t end = (i + 1) * keys.size() / count;
    parts.push_back({.first = i == 0 ? first_ : keys[begin],
                     .last = i + 1 == count ? last_ : keys[end],
                     .count = (end - begin) * sample_every_});
  }
  return parts;
}

TombstoneSweeper::TombstoneSweeper(rocksdb::DB* db,
                                   rocksdb::ColumnFamilyHandle* family,
                                   Table table,
                                   uint64_t deletes_min,
                                   MergeRoom* room,
                                   std::mutex* turn,
                                   EstimateRows estimate)
    : db_(db),
      family_(family),
      table_(table),
      deletes_min_(deletes_min),
      rest_min_(deletes_min / kMinPerRest),
      room_(room),
      turn_(turn),
      estimate_(std::move(estimate)),
      deletes_(PlaceOfDue(table)),
      next_look_(deletes_min_),
      next_rest_(rest_min_) {}

TombstoneSweeper::~TombstoneSweeper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.started()) {
    db_->DisableManualCompaction();
    thread_.Join();
    db_->EnableManualCompaction();
  }
}

void TombstoneSweeper::MoveMark(const Batch& batch) {
  // Searched from the end: the mark's row comes after the acks that moved it.
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
    if (op.table == table_ && op.is_delete && !deletes_.IsPassed(op.key, mark_)) {
      deletes_.Add(op.key);
    }
  }
  if (deletes_.count() < next_rest_) {
    return;
  }
  if (!thread_.Start([this] { Run(); })) {
    // Otherwise rows that the mark has passed would be kept, too.
    deletes_.Forget(mark_);
    next_rest_ = std::max(rest_min_, WithSomeMore(deletes_.count()));
    return;
  }
  wanted_ = wanted_ || deletes_.count() >= next_look_;
  if (wanted_ || before < next_rest_) {
    wake_.notify_one();
  }
}

// The parts where deleted rows are dense, however many rows there are elsewhere.
TombstoneSweeper::Parts TombstoneSweeper::DenseParts(const DeletedRows& deletes,
                                                     bool is_quiet) const {
  Parts dense;
  const Parts parts = deletes.Parts();
  std::vector<KeyRange> ranges;
  for (const DeletedRows::Part& part : parts) {
    ranges.push_back({.from = part.first, .to = part.last});
  }
  const StatusOr<std::vector<uint64_t>> living = estimate_(table_, ranges);
  for (size_t i = 0; living.ok() && i < parts.size(); ++i) {
    if (!AreDense(parts[i].count, (*living)[i], is_quiet)) {
      continue;
    }
    if (!dense.empty() && dense.back().last == parts[i].first) {
      dense.back().last = parts[i].last;
      dense.back().count += parts[i].count;
    } else {
      dense.push_back(parts[i]);
    }
  }
  return dense;
}

// The ranges that have enough deleted rows, if these are a good part of all rows there.
TombstoneSweeper::Parts TombstoneSweeper::WorthSweeping(const DeletedRows& deletes,
                                                        bool is_quiet) const {
  if (deletes.count() < (is_quiet ? rest_min_ : deletes_min_)) {
    return {};
  }
  uint64_t living = 0;
  db_->GetIntProperty(family_, rocksdb::DB::Properties::kEstimateNumKeys, &living);
  if (AreDense(deletes.count(), living, is_quiet)) {
    return {{.first = deletes.first(), .last = deletes.last(), .count = deletes.count()}};
  }
  const bool are_many = is_quiet || deletes.count() >= living / kLivingPerDelete;
  const uint64_t min = are_many ? deletes_min_ : kMinPerPart * deletes_min_;
  if (deletes.count() < min) {
    return {};
  }
  Parts dense = DenseParts(deletes, is_quiet);
  uint64_t sum = 0;
  for (const DeletedRows::Part& part : dense) {
    sum += part.count;
  }
  return sum >= min ? dense : Parts();
}

void TombstoneSweeper::Run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (wanted_) {
      Look(&lock, /*is_quiet=*/false);
    } else if (AwaitQuiet(&lock)) {
      Look(&lock, /*is_quiet=*/true);
    }
  }
}

// Waits until a look is wanted. True: no more deletes come, or there is room for what was refused.
bool TombstoneSweeper::AwaitQuiet(std::unique_lock<std::mutex>* lock) {
  const auto is_called = [this] { return wanted_ || ending_; };
  const auto has_more = [&] { return is_called() || deletes_.count() >= next_rest_; };
  if (retry_ == kNoRetry) {
    wake_.wait(*lock, has_more);
  } else if (!wake_.wait_for(*lock, retry_, has_more)) {
    return HasRoom(lock);
  }
  const uint64_t seen = deletes_.count();
  return !is_called() && !wake_.wait_for(*lock, kQuiet, is_called) && deletes_.count() == seen;
}

bool TombstoneSweeper::HasRoom(std::unique_lock<std::mutex>* lock) const {
  lock->unlock();
  const bool has_room = room_->HasRoomToFlush() && !room_->IsWaiting(family_->GetName());
  lock->lock();
  return has_room;
}

// Sweeps what is worth it. Commits go on meanwhile.
void TombstoneSweeper::Look(std::unique_lock<std::mutex>* lock, bool is_quiet) {
  lock->unlock();
  const std::lock_guard turn(*turn_);
  lock->lock();
  wanted_ = false;
  deletes_.Forget(mark_);
  // Deletes that come from here on may lie elsewhere.
  DeletedRows deletes = std::exchange(deletes_, DeletedRows(PlaceOfDue(table_)));
  next_look_ = deletes_min_;
  lock->unlock();
  const Parts parts = WorthSweeping(deletes, is_quiet);
  bool is_refused = false;
  for (const DeletedRows::Part& part : parts) {
    if (Sweep(part)) {
      deletes.Forget(part);
    } else {
      is_refused = true;
    }
  }
  lock->lock();
  retry_ = is_refused ? std::clamp(2 * retry_, kFirstRetry, kLastRetry) : kNoRetry;
  deletes_.Add(std::move(deletes));
  done_ += parts.empty() ? 0 : 1;
  const uint64_t later = WithSomeMore(deletes.count());
  next_look_ = std::max(deletes_min_, later);
  next_rest_ = std::max(rest_min_, is_quiet || !parts.empty() ? later : next_rest_);
}

// False: not now. It begins with a flush of the rows in memory, which would end the store on a disk
// without room for it, and stall writes for longer where compactions lag behind.
bool TombstoneSweeper::Sweep(const DeletedRows::Part& part) {
  if (!room_->HasRoomToFlush() || MergesLag(db_)) {
    return false;
  }
  rocksdb::CompactRangeOptions options;
  options.allow_write_stall = true;  // else the flush may wait for compactions, and a close for it
  options.exclusive_manual_compaction = false;  // flushes and compactions go on beside it
  // The tombstones may have reached the last level by a mere move of their file.
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  const rocksdb::Slice first(part.first);
  const rocksdb::Slice last(part.last);
  return !IsNoRoom(db_->CompactRange(options, family_, &first, &last));
}

}  // namespace delayd::storage
