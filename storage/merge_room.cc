#include "storage/merge_room.h"

#include <algorithm>
#include <utility>

#include "base/size_text.h"
#include "storage/flush_room.h"
#include "storage/rocks_job_store.h"
#include "storage/rocks_status.h"

namespace delayd::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr uint64_t kToldUnit = uint64_t{1} << 20;

std::atomic<void (*)(const std::string& what)>& TellMergeRefused() {
  static std::atomic<void (*)(const std::string& what)> tell = nullptr;
  return tell;
}

// The fraction of all rows that is left once each deletion has met its row.
double PartLeft(const rocksdb::TablePropertiesCollection& tables) {
  uint64_t rows = 0;
  uint64_t deletions = 0;
  for (const auto& [name, table] : tables) {
    rows += table->num_entries - std::min(table->num_entries, table->num_deletions);
    deletions += table->num_deletions;
  }
  return rows <= deletions ? 0 : static_cast<double>(rows - deletions) / static_cast<double>(rows);
}

std::string FreeInMiB(uint64_t bytes) {
  return FormatSize((bytes / kToldUnit) * kToldUnit);
}

std::string NeededInMiB(uint64_t bytes) {
  return FormatSize(((bytes + kToldUnit - 1) / kToldUnit) * kToldUnit);
}

IOStatus NoRoomForMerge() {
  return IOStatus::NoSpace("a merge of tables waits for room on the disk");
}

// RocksDB allocates 64 MiB ahead. If little is left, that would take the room of another file.
class AllocatedWithPlenty : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  AllocatedWithPlenty(std::unique_ptr<rocksdb::FSWritableFile> file, MergeRoom* room)
      : FSWritableFileOwnerWrapper(std::move(file)), room_(room) {}

  void SetPreallocationBlockSize(size_t bytes) override {
    if (room_->HasPlenty()) {
      target()->SetPreallocationBlockSize(bytes);
    }
  }

 protected:
  MergeRoom* room() const { return room_; }

 private:
  MergeRoom* const room_;
};

class MergedTable final : public AllocatedWithPlenty {
 public:
  using AllocatedWithPlenty::AllocatedWithPlenty;

  IOStatus Append(const rocksdb::Slice& data,
                  const IOOptions& options,
                  IODebugContext* debug) override {
    return room()->MayGoOn() ? target()->Append(data, options, debug) : NoRoomForMerge();
  }

  IOStatus Append(const rocksdb::Slice& data,
                  const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
};

class FilesWithRoom final : public rocksdb::FileSystemWrapper {
 public:
  FilesWithRoom(const std::shared_ptr<rocksdb::FileSystem>& base, std::shared_ptr<MergeRoom> room)
      : FileSystemWrapper(base), room_(std::move(room)) {}

  const char* Name() const override { return "FilesWithRoom"; }

  IOStatus NewWritableFile(const std::string& name,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    const bool is_merged = name.ends_with(".sst") && room_->IsMerging();
    if (is_merged && !room_->MayBegin()) {
      return NoRoomForMerge();
    }
    IOStatus status = target()->NewWritableFile(name, options, result, debug);
    if (status.ok() && is_merged) {
      *result = std::make_unique<MergedTable>(std::move(*result), room_.get());
    } else if (status.ok()) {
      *result = std::make_unique<AllocatedWithPlenty>(std::move(*result), room_.get());
    }
    return status;
  }

 private:
  const std::shared_ptr<MergeRoom> room_;
};

}  // namespace

MergeRoom::MergeRoom(std::shared_ptr<rocksdb::FileSystem> disk,
                     std::string directory,
                     uint64_t kept_bytes,
                     Ask ask,
                     Clock::duration retry)
    : disk_(std::move(disk)),
      directory_(std::move(directory)),
      kept_bytes_(kept_bytes),
      ask_(ask),
      retry_(retry) {}

uint64_t MergeRoom::Free() const {
  return FreeBytes(*disk_, directory_);
}

uint64_t MergeRoom::Reads(const rocksdb::CompactionJobInfo& merge) const {
  uint64_t read = 0;
  for (const std::string& table : merge.input_files) {
    uint64_t bytes = 0;
    disk_->GetFileSize(table, IOOptions(), &bytes, nullptr).PermitUncheckedError();
    read += bytes;
  }
  return read;
}

// An estimate: what the merge reads, less what its deletions remove. But those may concern rows
// that lie elsewhere; if the estimate was wrong for the same tables before, all that the merge
// reads.
uint64_t MergeRoom::MayWrite(const rocksdb::CompactionJobInfo& merge, uint64_t read) const {
  const auto stopped = stopped_.find(merge.cf_name);
  if (stopped != stopped_.end() && stopped->second == merge.input_files) {
    return read;
  }
  return static_cast<uint64_t>(static_cast<double>(read) * PartLeft(merge.table_properties));
}

// Room for the output, for what must stay free, for the commits that go on meanwhile (as much as
// the output, at most kept_bytes_), and for the merges that are already running.
uint64_t MergeRoom::Needed(uint64_t bytes) const {
  uint64_t needed = kept_bytes_ + bytes + std::min(bytes, kept_bytes_);
  for (const auto& [thread, other] : merges_) {
    needed += other.fits ? other.bytes : 0;
  }
  return needed;
}

bool MergeRoom::IsEarly(const std::string& table) const {
  const auto waiting = waiting_.find(table);
  return waiting != waiting_.end() && waiting->second.retry_at &&
         Clock::now() < *waiting->second.retry_at;
}

// A merge that the disk refused, and that was not tried again since, is no longer wanted.
void MergeRoom::DropWhatFits() {
  std::erase_if(waiting_, [this](const auto& one) {
    const Waiting& waiting = one.second;
    return waiting.retry_at ? Clock::now() >= *waiting.retry_at + retry_ : Fits(waiting.bytes);
  });
}

void MergeRoom::OnCompactionBegin(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo& merge) {
  const std::lock_guard lock(mutex_);
  merges_.erase(std::this_thread::get_id());
  const uint64_t read = Reads(merge);
  const uint64_t bytes = MayWrite(merge, read);
  const uint64_t needed = Needed(bytes);
  const bool fits = needed <= Free() && !IsEarly(merge.cf_name);
  merges_[std::this_thread::get_id()] = {.table = merge.cf_name,
                                         .inputs = merge.input_files,
                                         .read = read,
                                         .bytes = bytes,
                                         .needed = needed,
                                         .fits = fits};
}

void MergeRoom::OnCompactionCompleted(rocksdb::DB* /*db*/,
                                      const rocksdb::CompactionJobInfo& merge) {
  if (const Merge own = Own(); !own.refused && IsNoRoom(merge.status)) {
    Refuse(own, Lack::kOfTheDisk);
  }
  const std::lock_guard lock(mutex_);
  if (merge.status.ok()) {
    waiting_.erase(merge.cf_name);  // a merge that wrote nothing has not asked for room
  }
  merges_.erase(std::this_thread::get_id());
  changed_ = true;
}

void MergeRoom::OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*flush*/) {
  changed_ = true;
}

// Also covers a merge whose room others have taken. A MANIFEST that cannot be written has another
// reason, and stops the store.
void MergeRoom::OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) {
  if (reason == rocksdb::BackgroundErrorReason::kCompaction && IsNoRoom(*error)) {
    ++refusals_;
    *error = rocksdb::Status::OK();
  }
}

bool MergeRoom::IsMerging() const {
  const std::lock_guard lock(mutex_);
  return merges_.contains(std::this_thread::get_id());
}

MergeRoom::Merge MergeRoom::Own() const {
  const std::lock_guard lock(mutex_);
  const auto own = merges_.find(std::this_thread::get_id());
  return own != merges_.end() ? own->second : Merge();
}

bool MergeRoom::MayBegin() {
  const Merge merge = Own();
  if (!merge.fits) {
    Refuse(merge, Lack::kSpace);
    return false;
  }
  if (!merge.asked && !DiskHasRoom(merge)) {
    Refuse(merge, Lack::kOfTheDisk);
    return false;
  }
  const std::lock_guard lock(mutex_);
  merges_[std::this_thread::get_id()].asked = true;
  waiting_.erase(merge.table);
  return true;
}

// Commits go on during the probe, so it leaves them some of the room that must stay free.
bool MergeRoom::DiskHasRoom(const Merge& merge) {
  return ask_(directory_, merge.needed - kept_bytes_ / 4) == 0;
}

bool MergeRoom::MayGoOn() {
  const bool has_room = HasRoomToFlush();
  if (!has_room) {
    Refuse(Own(), Lack::kSpaceOnItsWay);
  }
  return has_room;
}

void MergeRoom::Refuse(const Merge& merge, Lack lack) {
  std::unique_lock lock(mutex_);
  merges_[std::this_thread::get_id()].refused = true;
  DropWhatFits();
  const bool is_first = waiting_.empty();
  if (lack == Lack::kOfTheDisk) {
    waiting_[merge.table] = {.bytes = merge.bytes, .retry_at = Clock::now() + retry_};
  } else if (!IsEarly(merge.table)) {
    waiting_[merge.table] = {.bytes = lack == Lack::kSpace ? merge.bytes : merge.read};
  }
  if (lack == Lack::kSpaceOnItsWay) {
    stopped_[merge.table] = merge.inputs;
  }
  changed_ = true;
  lock.unlock();
  if (auto* const tell = TellMergeRefused().load(); tell != nullptr && is_first) {
    tell("a merge in table " + merge.table + Tell(merge, lack));
  }
}

std::string MergeRoom::Tell(const Merge& merge, Lack lack) const {
  const std::string free = FreeInMiB(Free());
  switch (lack) {
    case Lack::kSpaceOnItsWay:
      return " was stopped on its way: " + NeededInMiB(kept_bytes_) + " must stay free, and " +
             free + " are";
    case Lack::kOfTheDisk:
      return " needs " + NeededInMiB(merge.needed) +
             ", which the disk refused: " + WhyRefused(directory_, Free());
    case Lack::kSpace:
      break;
  }
  return " may write " + NeededInMiB(merge.bytes) + " and must leave " +
         NeededInMiB(merge.needed - merge.bytes) + " for commits, flushes and other merges, and " +
         free + " are free";
}

bool MergeRoom::HasRoomToMerge(uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return Fits(bytes);
}

bool MergeRoom::IsWaiting(const std::string& table) {
  const std::lock_guard lock(mutex_);
  DropWhatFits();
  const auto waiting = waiting_.find(table);
  return waiting != waiting_.end() && (!waiting->second.retry_at || IsEarly(table));
}

uint64_t MergeRoom::CountWaiting() {
  const std::lock_guard lock(mutex_);
  DropWhatFits();
  return waiting_.size();
}

bool MergeRoom::TakeChange() {
  return changed_.load(std::memory_order_relaxed) && changed_.exchange(false);
}

std::shared_ptr<rocksdb::FileSystem> NewFilesWithRoom(
    const std::shared_ptr<rocksdb::FileSystem>& base, std::shared_ptr<MergeRoom> room) {
  return std::make_shared<FilesWithRoom>(base, std::move(room));
}

void OnMergeRefused(void (*tell)(const std::string& what)) {
  TellMergeRefused().store(tell);
}

}  // namespace delayd::storage
