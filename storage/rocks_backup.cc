// A copy of a running store: where it may be placed, and when it is whole.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/crash_point.h"
#include "base/errno_text.h"
#include "base/size_text.h"
#include "base/unique_fd.h"
#include "storage/files.h"
#include "storage/flush_room.h"
#include "storage/keys.h"
#include "storage/live_copy.h"
#include "storage/log_scan.h"
#include "storage/numbered_files.h"
#include "storage/one_disk.h"
#include "storage/posix_error.h"
#include "storage/record.h"
#include "storage/rocks_store.h"

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace delayd::storage {

namespace fs = std::filesystem;

namespace {

// The copy's files are accessed by path, in its final place and in ".tmp" beside it.
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

// Places where a service's files may be private to it and are removed with it (PrivateTmp=,
// RemoveIPC=): our unit closes them.
bool IsForATime(const std::string& parent) {
  const auto places = std::to_array<std::string_view>({"/tmp/", "/var/tmp/", "/dev/shm/"});
  return std::ranges::any_of(
      places, [&](std::string_view place) { return (parent + "/").starts_with(place); });
}

// The parent directory must be writable, and readable so that it can be fsynced.
Status CheckParent(const std::string& directory) {
  const std::string parent = ParentOf(directory);
  // With the slash a file gives ENOTDIR, whoever owns it.
  if (::access((parent + "/").c_str(), R_OK | W_OK | X_OK) == 0) {
    return OkStatus();
  }
  const int error = errno;
  const std::string cause = "cannot back up to " + directory + ": " + ErrnoText(error);
  if (error == ENOENT || error == ENOTDIR) {
    return InvalidArgument(cause + "; make the directory " + parent + " first");
  }
  if (error == EROFS && IsForATime(parent)) {
    return PermissionDenied(cause +
                            "; what a service keeps in /tmp, /var/tmp or /dev/shm goes "
                            "with it; name a directory elsewhere");
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return PermissionDenied(cause + "; let the daemon write to " + parent +
                            " (its owner and mode, and ReadWritePaths= of its service)" +
                            (error == EACCES ? ServiceCure(error, directory) : ""));
  }
  errno = error;
  return PosixError("cannot back up to", directory);
}

// systemd keeps this directory in memory (RuntimeDirectory=).
bool IsRuntimeDirectory(const std::string& path) {
  const char* const list = std::getenv("RUNTIME_DIRECTORY");  // NOLINT(concurrency-mt-unsafe)
  return list != nullptr &&
         (":" + std::string(list) + ":").find(":" + path + ":") != std::string::npos;
}

// A copy among the store's own files would be taken for damage, or for rubbish, at the next start;
// one inside another store, such as an earlier backup, would be removed together with it.
Status CheckOutside(const std::string& directory, const std::string& data_dir) {
  std::error_code error;
  fs::path above = fs::canonical(ParentOf(directory), error);
  while (!error && !fs::equivalent(above, data_dir, error)) {
    if (DataDir::RequireStore(above.string()).ok()) {
      return InvalidArgument("cannot back up to " + directory + ": " + above.string() +
                             " is a store or a backup itself; name a directory outside of it");
    }
    if (IsRuntimeDirectory(above.string())) {
      return InvalidArgument("cannot back up to " + directory + ": what lies in " + above.string() +
                             " is kept in memory, and goes with the service or the next start of "
                             "the machine; name a directory elsewhere");
    }
    if (above == above.root_path()) {
      return OkStatus();
    }
    above = above.parent_path();
  }
  if (error) {
    return Unavailable("cannot look at the directories above " + directory + ": " +
                           error.message() + std::string(kDiskCure),
                       "storage_io");
  }
  return InvalidArgument("cannot back up to " + directory + ": it lies in the data directory " +
                         data_dir + "; name a directory outside of it");
}

// May a file of this name be part of an unfinished copy?
bool IsPartOfCopy(std::string_view name) {
  for (const std::string_view prefix : {"MANIFEST-", "OPTIONS-"}) {
    if (name.starts_with(prefix)) {
      return NumberOf(name.substr(prefix.size()), "").has_value();
    }
  }
  return name == "CURRENT" || NumberOf(name, ".sst") || NumberOf(name, ".log") ||
         NumberOf(name, ".dbtmp");
}

// Some places accept no directory, whatever their permissions say (/proc).
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

// The copy is built beside its final place. What a backup that was cut short has left there is
// removed; anything else under that name is left alone, and the backup refused.
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
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(staging));
  for (const std::string& name : names) {
    if (!IsPartOfCopy(name) || fs::is_directory(staging + "/" + name, error)) {
      return AlreadyExists("cannot back up to " + directory + ": " + staging +
                           ", where the copy would be built, holds " + name +
                           ", which no backup has left" + cure);
    }
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

// A flush that gets no file fails the store. It makes a log, and a table of each kind, which stays
// open.
Status CheckFilesToFlush() {
  constexpr size_t kFilesOfFlush = 32;
  const StatusOr<std::vector<std::string>> open = ListDirectory("/proc/self/fd");
  if (!open.ok()) {
    // Without /proc nobody can tell.
    return open.status().code() == StatusCode::kUnavailable ? open.status() : OkStatus();
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || open->size() + kFilesOfFlush <= limit.rlim_cur) {
    return OkStatus();
  }
  return Unavailable("the daemon has " + std::to_string(open->size()) + " of at most " +
                         std::to_string(limit.rlim_cur) + " files open, and a backup needs " +
                         std::to_string(kFilesOfFlush) + " more" + std::string(kOpenFilesCure),
                     "storage_io");
}

// The newest log is copied while it is being written, page by page, including the zeroes ahead of
// its last record. Pages that are filled meanwhile leave zeroes in the copy with whole records
// behind them, which an open takes for damage. Everything acknowledged before the backup began lies
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
  // A log that is hard-linked to the store's is no copy, and must not be cut.
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

// Locks the directory of a copy, for another daemon may be told to write a backup to the same path:
// each would remove what the other has there.
StatusOr<UniqueFd> LockCopy(const std::string& path) {
  const Status taken = FailedPrecondition(
      "another backup is being written to " + path + "; name another directory, or wait for it",
      "backup_busy");
  UniqueFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock.valid()) {
    return errno == ENOENT ? taken : PosixError("cannot open", path);
  }
  // Some network file systems cannot lock a directory. A backup to them is worth more.
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return taken;
  }

  struct stat held {};

  struct stat there {};

  // The other one may have ended before we had the lock.
  const bool is_there = ::fstat(lock.get(), &held) == 0 && ::lstat(path.c_str(), &there) == 0 &&
                        held.st_dev == there.st_dev && held.st_ino == there.st_ino;
  return is_there ? StatusOr<UniqueFd>(std::move(lock)) : taken;
}

// The directory of a copy, which is removed unless the copy is kept: an incomplete copy is of no
// use, and would be in the way of the next one.
class UnfinishedCopy {
 public:
  UnfinishedCopy() = default;

  ~UnfinishedCopy() {
    std::error_code error;  // what cannot be removed has no FORMAT, and so is no store
    if (!path_.empty()) {
      fs::remove_all(path_, error);
    }
  }

  UnfinishedCopy(const UnfinishedCopy&) = delete;
  UnfinishedCopy& operator=(const UnfinishedCopy&) = delete;

  // Replaces what another backup has left there.
  Status Make(const std::string& path) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(path, error))) {
      DELAYD_ASSIGN_OR_RETURN(const UniqueFd left_by_other, LockCopy(path));
      fs::remove_all(path, error);
    }
    if (::mkdir(path.c_str(), 0700) != 0) {
      return PosixError("cannot make the directory", path);
    }
    DELAYD_ASSIGN_OR_RETURN(lock_, LockCopy(path));
    path_ = path;
    // If everybody can read the directory, everybody can read the jobs.
    if (::chmod(path.c_str(), 0700) != 0) {
      return InvalidArgument("cannot keep others out of " + path + ": " + ErrnoText(errno) +
                             "; name a directory on a file system that has owners and modes");
    }
    return OkStatus();
  }

  Status MoveTo(const std::string& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) {
      return PosixError("cannot rename " + path_ + " to", path);
    }
    path_ = path;
    return OkStatus();
  }

  void Keep() { path_.clear(); }

 private:
  std::string path_;
  UniqueFd lock_;  // of the directory, whatever its name
};

// The files of a copy are missing only where somebody removes them.
Status WhyNotWritten(const Status& status, const std::string& directory) {
  if (status.code() != StatusCode::kNotFound) {
    return status;
  }
  return Unavailable(status.message() + "; what is in " + ParentOf(directory) +
                         " was removed while the backup was written: leave it there, and back up "
                         "again",
                     "storage_io");
}

Status SyncFiles(const std::string& directory) {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    DELAYD_RETURN_IF_ERROR(SyncFile(directory + "/" + name));
  }
  return OkStatus();
}

}  // namespace

Status RocksJobStore::CheckPlaceOfBackup(const std::string& directory) const {
  DELAYD_RETURN_IF_ERROR(same_directory_.Check());
  DELAYD_RETURN_IF_ERROR(CheckLength(directory));
  std::error_code error;
  // A dangling link takes the name, too.
  if (fs::exists(fs::symlink_status(directory, error))) {
    return AlreadyExists("backup directory " + directory + " exists; name a new one");
  }
  DELAYD_RETURN_IF_ERROR(CheckParent(directory));
  DELAYD_RETURN_IF_ERROR(CheckOutside(directory, dir_.path()));
  return CheckStaging(directory);
}

Status RocksJobStore::BackUpTo(const std::string& path, const GoOn& go_on) {
  const std::string directory = WithoutTrailingSlashes(path);
  if (db_ == nullptr) {
    return StoreClosed();
  }
  DELAYD_RETURN_IF_ERROR(CheckPlaceOfBackup(directory));
  DELAYD_RETURN_IF_ERROR(CheckRoomToFlush(dir_.path(), env_.get()));
  DELAYD_RETURN_IF_ERROR(CheckFilesToFlush());
  // Read before the copy is taken: the copy has reached at least this batch.
  uint64_t number = 0;
  std::string value;
  if (Get(Table::kMeta, kBatchNumberKey, &value).ok()) {
    DELAYD_ASSIGN_OR_RETURN(number, DecodeNumber(kBatchNumberKey, value));
  }
  const std::string staging = directory + ".tmp";
  UnfinishedCopy copy;
  DELAYD_RETURN_IF_ERROR(copy.Make(staging));
  const auto write = [&]() -> Status {
    // A copy that filled the store's own disk would end the store: it leaves free what merges do.
    const bool takes_own_room = AreOnOneDisk(dir_.path(), staging);
    DELAYD_RETURN_IF_ERROR(CopyLiveFiles(db_.get(), families_, staging, go_on, [&] {
      return !takes_own_room || merge_room_->HasRoomToFlush();
    }));
    DELAYD_RETURN_IF_ERROR(CutAtFirstHole(staging));
    DELAYD_RETURN_IF_ERROR(copy.MoveTo(directory));
    DELAYD_CRASH_POINT("backup/copied");
    DELAYD_RETURN_IF_ERROR(BatchFloor(directory).Set(number));
    DELAYD_RETURN_IF_ERROR(SyncFiles(directory));
    // Makes the rename from the staging name durable: FORMAT must never exist under that name.
    DELAYD_RETURN_IF_ERROR(SyncFile(ParentOf(directory)));
    DELAYD_CRASH_POINT("backup/synced");
    // Last: without FORMAT the copy is not taken for a store.
    return WriteFormatFile(directory);
  };
  const Status written = write();
  if (written.ok()) {
    copy.Keep();
  }
  return WhyNotWritten(written, directory);
}

Status BackUpRocksJobStore(JobStore* store, const std::string& directory, const GoOn& go_on) {
  return AsRocks(*store).BackUpTo(directory, go_on);
}

}  // namespace delayd::storage
