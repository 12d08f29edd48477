#include "storage/prewritten_log.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "storage/rocks_status.h"

namespace delayd::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// About 1,500 commits of one small job.
constexpr uint64_t kAheadBytes = uint64_t{512} << 10;
// A sync of more than this hardly gains from avoiding the file system's journal.
constexpr uint64_t kSmallSyncBytes = uint64_t{16} << 10;
constexpr std::array<char, size_t{64} << 10> kZeroes{};

// Writes everything at an explicit offset: the next record does not go to the end of the file.
class PrewrittenLog final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  explicit PrewrittenLog(std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    unsynced_ += data.size();
    if (position_ + data.size() > zeroes_end_ && unsynced_ <= kSmallSyncBytes) {
      if (IOStatus status = WriteAhead(data.size(), options, debug); !status.ok()) {
        return status;
      }
    }
    IOStatus status = target()->PositionedAppend(data, position_, options, debug);
    if (status.ok()) {
      position_ += data.size();
    }
    return status;
  }

  IOStatus Append(const Slice& data,
                  const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    unsynced_ = 0;
    return target()->Sync(options, debug);
  }

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    unsynced_ = 0;
    return target()->Fsync(options, debug);
  }

  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    position_ = zeroes_end_ = size;
    return target()->Truncate(size, options, debug);
  }

  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    IOStatus cut;
    if (zeroes_end_ > position_) {
      cut = Truncate(position_, options, debug);
    }
    IOStatus closed = target()->Close(options, debug);
    return cut.ok() ? closed : cut;
  }

  uint64_t GetFileSize(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return position_;
  }

 private:
  IOStatus WriteAhead(uint64_t bytes, const IOOptions& options, IODebugContext* debug) {
    uint64_t at = std::max(position_, zeroes_end_);
    const uint64_t end = position_ + bytes + kAheadBytes;
    while (at < end && !disk_is_full_) {
      const Slice part(kZeroes.data(), std::min<uint64_t>(kZeroes.size(), end - at));
      const IOStatus status = target()->PositionedAppend(part, at, options, debug);
      if (IsNoRoom(status)) {
        disk_is_full_ = true;  // the record may still fit; otherwise the commit fails
      } else if (!status.ok()) {
        return status;
      } else {
        at += part.size();
        zeroes_end_ = at;
      }
    }
    return IOStatus::OK();
  }

  uint64_t position_ = 0;    // where the next record goes
  uint64_t zeroes_end_ = 0;  // the file is written up to here, or up to position_
  uint64_t unsynced_ = 0;    // bytes of records
  bool disk_is_full_ = false;
};

class PrewrittenLogs final : public rocksdb::FileSystemWrapper {
 public:
  explicit PrewrittenLogs(const std::shared_ptr<rocksdb::FileSystem>& base)
      : FileSystemWrapper(base) {}

  const char* Name() const override { return "PrewrittenLogs"; }

  IOStatus NewWritableFile(const std::string& name,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(name, options, result, debug);
    if (status.ok() && name.ends_with(".log")) {
      *result = std::make_unique<PrewrittenLog>(std::move(*result));
    }
    return status;
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> NewPrewrittenLogs(
    const std::shared_ptr<rocksdb::FileSystem>& base) {
  return std::make_shared<PrewrittenLogs>(base);
}

}  // namespace delayd::storage
