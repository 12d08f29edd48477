// A copy of a running store, by RocksDB's checkpoint: table files are hard links where they can be.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <rocksdb/utilities/checkpoint.h>

#include "base/crash_point.h"
#include "storage/keys.h"
#include "storage/log_scan.h"
#include "storage/posix_error.h"
#include "storage/record.h"
#include "storage/recovery.h"
#include "storage/rocks_store.h"

#include <sys/stat.h>

namespace delayd::storage {

namespace fs = std::filesystem;

namespace {

Status CheckParent(const std::string& directory) {
  const std::string parent = fs::path(directory).lexically_normal().parent_path().string();
  if (::access(parent.c_str(), W_OK | X_OK) == 0) {
    return OkStatus();
  }
  const std::string cause =
      "cannot back up to " + directory + ": " + std::generic_category().message(errno);
  if (errno == ENOENT || errno == ENOTDIR) {
    return InvalidArgument(cause + "; make the directory " + parent + " first");
  }
  return PermissionDenied(cause + "; let the daemon write to " + parent +
                          " (its owner and mode, and ReadWritePaths= of its service)");
}

// The newest log is copied while it is written, page by page, with the zeroes that stand ahead of
// its last record: pages that are filled meanwhile leave zeroes in the copy with whole records
// behind them, which an open takes for damage. What was acknowledged before the backup began stands
// before the first such hole; the rest is cut off.
Status CutAtFirstHole(const std::string& directory) {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> logs, LogNames(directory));
  if (logs.empty()) {
    return OkStatus();
  }
  const std::string path = directory + "/" + logs.back();

  struct stat info {};

  if (::stat(path.c_str(), &info) != 0) {
    return PosixError("cannot read", path);
  }
  // A log that the store shares is no copy, and its own business.
  if (info.st_nlink != 1) {
    return OkStatus();
  }
  DELAYD_ASSIGN_OR_RETURN(const LogScan scan, ScanLogFile(path));
  if (scan.damaged_at.has_value() &&
      ::truncate(path.c_str(), static_cast<off_t>(*scan.damaged_at)) != 0) {
    return PosixError("cannot cut", path);
  }
  return OkStatus();
}

}  // namespace

Status RocksJobStore::BackUpTo(const std::string& directory) {
  if (db_ == nullptr) {
    return FailedPrecondition("the store is closed", "store_closed");
  }
  std::error_code error;
  if (fs::exists(directory, error)) {
    return AlreadyExists("backup directory " + directory + " exists; name a new one");
  }
  DELAYD_RETURN_IF_ERROR(CheckParent(directory));
  // Read before the copy is taken: the copy has reached at least this.
  uint64_t number = 0;
  std::string value;
  if (Get(Table::kMeta, kBatchNumberKey, &value).ok()) {
    DELAYD_ASSIGN_OR_RETURN(number, DecodeNumber(kBatchNumberKey, value));
  }
  rocksdb::Checkpoint* raw = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(db_.get(), &raw);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
  if (status.ok()) {
    // With flushed memtables: the copy needs no log.
    status = checkpoint->CreateCheckpoint(directory, 0);
  }
  DELAYD_RETURN_IF_ERROR(FromRocks(status, "cannot back up to " + directory));
  DELAYD_RETURN_IF_ERROR(CutAtFirstHole(directory));
  DELAYD_CRASH_POINT("backup/copied");
  if (::chmod(directory.c_str(), 0700) != 0) {
    return PosixError("cannot protect", directory);
  }
  DELAYD_RETURN_IF_ERROR(BatchFloor(directory).Set(number));
  for (const fs::directory_entry& file : fs::directory_iterator(directory, error)) {
    DELAYD_RETURN_IF_ERROR(SyncFile(file.path().string()));
  }
  if (error) {
    return Unavailable("cannot read " + directory + ": " + error.message(), "storage_io");
  }
  DELAYD_CRASH_POINT("backup/synced");
  // Last: without it the copy is not taken for a store.
  return WriteFormatFile(directory);
}

Status BackUpRocksJobStore(JobStore* store, const std::string& directory) {
  return AsRocks(*store).BackUpTo(directory);
}

}  // namespace delayd::storage
