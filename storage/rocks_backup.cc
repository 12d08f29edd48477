// A copy of a running store, by RocksDB's checkpoint: table files are hard links where they can be.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <rocksdb/utilities/checkpoint.h>

#include "base/crash_point.h"
#include "base/errno_text.h"
#include "base/size_text.h"
#include "storage/flush_room.h"
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

// The files of the copy are named by path, in its place and in ".tmp" beside it.
Status CheckLength(const std::string& directory) {
  constexpr size_t kNameBytesMax = 64;
  constexpr size_t kBytesMax = PATH_MAX - kNameBytesMax;
  if (directory.size() <= kBytesMax) {
    return OkStatus();
  }
  return InvalidArgument("cannot back up to a path of " + std::to_string(directory.size()) +
                         " bytes: with the files in it it would be longer than the system takes; "
                         "name a directory whose path has no more than " +
                         std::to_string(kBytesMax));
}

// It is written to, and read to be fsynced.
Status CheckParent(const std::string& directory) {
  const std::string parent = ParentOf(directory);
  // With the slash a file is told as what it is, whoever owns it.
  if (::access((parent + "/").c_str(), R_OK | W_OK | X_OK) == 0) {
    return OkStatus();
  }
  const std::string cause = "cannot back up to " + directory + ": " + ErrnoText(errno);
  if (errno == ENOENT || errno == ENOTDIR) {
    return InvalidArgument(cause + "; make the directory " + parent + " first");
  }
  return PermissionDenied(cause + "; let the daemon write to " + parent +
                          " (its owner and mode, and ReadWritePaths= of its service)");
}

// A copy among the store's own files would be taken for damage, or for rubbish, at the next start;
// one in another store, such as an earlier backup, goes where that goes.
Status CheckOutside(const std::string& directory, const std::string& data_dir) {
  std::error_code error;
  fs::path above = fs::canonical(ParentOf(directory), error);
  while (!error && !fs::equivalent(above, data_dir, error)) {
    if (DataDir::RequireStore(above.string()).ok()) {
      return InvalidArgument("cannot back up to " + directory + ": " + above.string() +
                             " is a store or a backup itself; name a directory outside of it");
    }
    if (above == above.root_path()) {
      return OkStatus();
    }
    above = above.parent_path();
  }
  if (error) {
    return Unavailable("cannot look at the directories above " + directory + ": " + error.message(),
                       "storage_io");
  }
  return InvalidArgument("cannot back up to " + directory + ": it lies in the data directory " +
                         data_dir + "; name a directory outside of it");
}

// May this stand in a copy that RocksDB has begun?
bool IsPartOfCopy(std::string_view name) {
  for (const std::string_view prefix : {"MANIFEST-", "OPTIONS-"}) {
    if (name.starts_with(prefix)) {
      return IsNumbered(name.substr(prefix.size()), "");
    }
  }
  return name == "CURRENT" || IsNumbered(name, ".sst") || IsNumbered(name, ".log") ||
         IsNumbered(name, ".dbtmp");
}

// Some places take no directory, whatever their rights say (/proc), and RocksDB would call a
// missing place a damaged store.
Status CheckRoom(const std::string& directory, const std::string& staging) {
  if (::mkdir(staging.c_str(), 0700) == 0 && ::rmdir(staging.c_str()) == 0) {
    return OkStatus();
  }
  const int error = errno;
  const Status cause =
      PosixError("cannot back up to " + directory + ": cannot make the directory", staging);
  const bool is_place = error == ENOENT || error == ENAMETOOLONG || error == EPERM;
  return is_place ? InvalidArgument(cause.message() + "; name a directory elsewhere") : cause;
}

// RocksDB builds the copy beside its place and first removes every file that is there: what a
// backup that was cut short has left, and whatever else somebody keeps under that name.
Status CheckStaging(const std::string& directory) {
  const std::string staging = directory + ".tmp";
  const std::string cure = "; move it away, or name another directory for the backup";
  std::error_code error;
  if (!fs::exists(fs::symlink_status(staging, error))) {
    return CheckRoom(directory, staging);
  }
  if (!fs::is_directory(fs::symlink_status(staging, error))) {
    return AlreadyExists("cannot back up to " + directory + ": " + staging +
                         ", where the copy would be built, is no directory" + cure);
  }
  for (fs::directory_iterator it(staging, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!IsPartOfCopy(name) || it->is_directory(error)) {
      return AlreadyExists("cannot back up to " + directory + ": " + staging +
                           ", where the copy would be built, holds " + name +
                           ", which no backup has left" + cure);
    }
  }
  if (error) {
    return Unavailable("cannot read " + staging + ": " + error.message(), "storage_io");
  }
  return OkStatus();
}

// A backup begins with a flush.
Status CheckRoomToFlush(const std::string& data_dir, rocksdb::Env* env) {
  DELAYD_ASSIGN_OR_RETURN(const FlushRoom room, AskFlushRoom(data_dir, env));
  if (room.is_enough()) {
    return OkStatus();
  }
  return ResourceExhausted("the disk of " + data_dir + " is full, " + FormatSize(room.free) +
                               " are left and a backup first writes up to " +
                               FormatSize(room.needed) + " there; free some space",
                           "disk_full");
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

Status RocksJobStore::BackUpTo(const std::string& path) {
  const std::string directory = WithoutTrailingSlashes(path);
  if (db_ == nullptr) {
    return StoreClosed();
  }
  DELAYD_RETURN_IF_ERROR(same_directory_.Check());
  DELAYD_RETURN_IF_ERROR(CheckLength(directory));
  std::error_code error;
  // Of a dead link, too, the name is taken.
  if (fs::exists(fs::symlink_status(directory, error))) {
    return AlreadyExists("backup directory " + directory + " exists; name a new one");
  }
  DELAYD_RETURN_IF_ERROR(CheckParent(directory));
  DELAYD_RETURN_IF_ERROR(CheckOutside(directory, dir_.path()));
  DELAYD_RETURN_IF_ERROR(CheckStaging(directory));
  DELAYD_RETURN_IF_ERROR(CheckRoomToFlush(dir_.path(), env_.get()));
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
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    DELAYD_RETURN_IF_ERROR(SyncFile(it->path().string()));
  }
  if (error) {
    return Unavailable("cannot read " + directory + ": " + error.message(), "storage_io");
  }
  // The rename from where it was built: FORMAT never stands under that other name.
  DELAYD_RETURN_IF_ERROR(SyncFile(ParentOf(directory)));
  DELAYD_CRASH_POINT("backup/synced");
  // Last: without it the copy is not taken for a store.
  return WriteFormatFile(directory);
}

Status BackUpRocksJobStore(JobStore* store, const std::string& directory) {
  return AsRocks(*store).BackUpTo(directory);
}

}  // namespace delayd::storage
