#include "storage/data_dir.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errno_text.h"
#include "storage/files.h"
#include "storage/numbered_files.h"
#include "storage/posix_error.h"
#include "storage/record.h"

#include <sys/file.h>
#include <sys/stat.h>

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLockName = "/LOCK.delayd";
constexpr std::string_view kFormatName = "/FORMAT";
constexpr std::string_view kFormatPrefix = "delayd-store schema ";

// The error for a place where no directory can be, whatever the permissions.
Status CannotBeThere(const std::string& path) {
  const int error = errno;
  const Status status = PosixError("cannot make the data directory", path);
  if (error == EACCES || error == EPERM || error == EROFS || error == ENOSPC || error == EDQUOT ||
      error == EIO) {
    return status;  // already says what to do
  }
  return {
      status.code(),
      status.message() + "; set data_dir to a directory on a local disk, such as /var/lib/delayd",
      status.reason()};
}

// Creates `path` and every missing directory above it, each durable in its parent.
Status MakeDirectories(const std::string& path) {
  struct stat info {};

  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) {
      return FailedPrecondition(path + " is not a directory; set data_dir to a directory");
    }
    return OkStatus();
  }
  if (errno != ENOENT) {
    return CannotBeThere(path);
  }
  const std::string parent = ParentOf(path);
  DELAYD_RETURN_IF_ERROR(MakeDirectories(parent));
  // Nobody else may read the payloads.
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == EACCES) {  // it does not exist, so it has no owner to run as
      return PermissionDenied("cannot make the data directory " + path + ": " + ErrnoText(EACCES) +
                              "; make it for the daemon's user (install -d -m 0700 -o USER), or "
                              "set another data_dir");
    }
    if (errno != EEXIST) {
      return CannotBeThere(path);
    }
    if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
      return FailedPrecondition(path + " is a symbolic link that leads nowhere; is its disk " +
                                "mounted? else set data_dir to a directory");
    }
  }
  return SyncFile(parent);
}

Status InUse(const std::string& path, int lock_fd, bool must_exist) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(lock_fd, text.data(), text.size() - 1, 0);
  std::string holder(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  while (!holder.empty() && holder.back() == '\n') {
    holder.pop_back();
  }
  return FailedPrecondition("data directory " + path + " is in use by process " +
                                (holder.empty() ? "(unknown)" : holder) + "; stop it" +
                                (must_exist ? "" : ", or set another data_dir"),
                            "data_dir_in_use");
}

// What remains when the creation of a store is cut short; none of it was acknowledged.
bool MayPrecedeStore(std::string_view name) {
  return name == "lost+found" || name == "LOCK.delayd" || name == "BATCH" || name == "RECOVERY" ||
         name == "damaged" || name == "LOCK" || name == "IDENTITY" || name == "CURRENT" ||
         name.starts_with("FORMAT.") || name.starts_with("LOG") || name.starts_with("MANIFEST-") ||
         name.starts_with("OPTIONS-") || name.ends_with(".dbtmp");
}

bool HoldsJobs(std::string_view name) {
  return NumberOf(name, ".sst") || NumberOf(name, ".log");
}

// RocksDB opens these as they are. It moves any LOG away, and writes a new OPTIONS file.
bool MustBeFile(std::string_view name) {
  return name == "LOCK.delayd" || name == "FORMAT" || name == "BATCH" || name == "RECOVERY" ||
         name == "LOCK" || name == "IDENTITY" || name == "CURRENT" ||
         name.starts_with("MANIFEST-") || HoldsJobs(name);
}

// What to do if something other than a file is at `name`.
std::string CureOfNoFile(std::string_view name) {
  if (name == "LOCK" || name == "LOCK.delayd" || name == "BATCH" || name == "IDENTITY") {
    return "; move it away: a start makes the file";
  }
  if (name == "FORMAT" || name == "CURRENT") {
    return "; move it away: the next start says which line belongs into the file";
  }
  if (name == "RECOVERY") {  // its content is lost, as if it made no sense
    return "; move it away, make an empty file in its place, and run delayctl recover "
           "--accept-loss";
  }
  return "; put the file back, or restore a backup";
}

// What is at `path` instead of a file; nothing if it is a file, or cannot be examined.
std::optional<std::string> NoFile(const std::string& path) {
  struct stat info {};

  if (::stat(path.c_str(), &info) != 0) {
    const bool leads_nowhere = errno == ENOENT && ::lstat(path.c_str(), &info) == 0;
    return leads_nowhere ? std::optional("is a symbolic link that leads nowhere") : std::nullopt;
  }
  if (S_ISREG(info.st_mode)) {
    return std::nullopt;
  }
  return S_ISDIR(info.st_mode) ? "is a directory and no file" : "is no regular file";
}

std::string UserName(uid_t uid) {
  std::array<char, 1024> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const bool is_known =
      ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return "user " + (is_known ? std::string(found->pw_name) : std::to_string(uid));
}

// Root may open everything. But if root adds files to a store that another user made, that user
// cannot read them, and the service no longer starts.
Status CheckMaker(const std::string& path) {
  struct stat info {};

  const std::string format = path + std::string(kFormatName);
  if (::geteuid() != 0 || ::stat(format.c_str(), &info) != 0 || info.st_uid == 0) {
    return OkStatus();
  }
  return PermissionDenied("the store in " + path + " was made by " + UserName(info.st_uid) +
                          ", who could not read what root adds to it; run as that user (runuser "
                          "-u), or give root all of it (chown -R root " +
                          path + ")");
}

}  // namespace

Status CheckFiles(const std::string& directory) {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    std::error_code ignored;
    const bool must_be = MustBeFile(name) || (name == "LOG" && fs::is_symlink(path, ignored));
    const std::optional<std::string> what = must_be ? NoFile(path) : std::nullopt;
    if (what.has_value()) {
      return DataLoss(
          "data directory " + directory + " is damaged: " + path + " " + *what + CureOfNoFile(name),
          "damaged_store");
    }
  }
  return OkStatus();
}

StatusOr<DataDir> DataDir::Acquire(const std::string& raw_path, bool must_exist) {
  if (must_exist) {
    DELAYD_RETURN_IF_ERROR(RequireStore(raw_path));
  }
  if (raw_path.empty()) {
    return InvalidArgument("data_dir is empty; set it to a directory");
  }
  const std::string path = WithoutTrailingSlashes(raw_path);
  DELAYD_RETURN_IF_ERROR(MakeDirectories(path));
  DELAYD_RETURN_IF_ERROR(CheckFiles(path));
  DELAYD_RETURN_IF_ERROR(CheckMaker(path));
  const std::string lock_path = path + std::string(kLockName);
  const bool makes_lock = ::access(lock_path.c_str(), F_OK) != 0;
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) {
    return PosixError("cannot open", lock_path);
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return InUse(path, lock.get(), must_exist);
    }
    return PosixError("cannot lock", lock_path);
  }
  // For people who ask who holds the lock; nothing depends on it.
  if (::ftruncate(lock.get(), 0) == 0) {
    const Status told = WriteAll(lock.get(), std::to_string(::getpid()) + "\n", lock_path);
    DELAYD_RETURN_IF_ERROR(told.reason() == "disk_full" ? OkStatus() : told);
  }
  return DataDir(path, std::move(lock), makes_lock);
}

Status DataDir::RequireStore(const std::string& raw_path) {
  const DataDir look(WithoutTrailingSlashes(raw_path), UniqueFd(), false);
  bool holds_store = false;
  if (::access(look.path().c_str(), F_OK) == 0 || errno != ENOENT) {
    DELAYD_RETURN_IF_ERROR(CheckFiles(look.path()));
    const StatusOr<bool> holds = look.HoldsStore();
    // Advice to use an empty directory does not help anyone who looks for a store.
    if (!holds.ok() && holds.status().reason() != "data_dir_foreign") {
      return holds.status();
    }
    holds_store = holds.ok() && *holds;
    if (holds.ok() && !holds_store) {
      DELAYD_RETURN_IF_ERROR(look.CheckNoJobs());
    }
  }
  return holds_store ? OkStatus()
                     : NotFound("data directory " + look.path() +
                                    " holds no store; is its disk mounted? else check the path",
                                "no_store");
}

void DataDir::RemoveOwnLock() const {
  if (made_lock_) {
    ::unlink((path_ + std::string(kLockName)).c_str());
  }
}

StatusOr<bool> DataDir::HoldsStore() const {
  DELAYD_ASSIGN_OR_RETURN(const std::optional<std::string> format,
                          ReadFileIfThere(path_ + std::string(kFormatName)));
  if (!format.has_value()) {
    DELAYD_RETURN_IF_ERROR(CheckNothingToLose());
    return false;
  }
  uint32_t schema = 0;
  const std::string_view text = *format;
  const size_t begin = text.starts_with(kFormatPrefix) ? kFormatPrefix.size() : text.size();
  const auto parsed = std::from_chars(text.data() + begin, text.data() + text.size(), schema);
  if (parsed.ec != std::errc() || schema == 0) {
    return DataLoss(path_ + "/FORMAT is damaged; if nothing else is, write \"" +
                        std::string(kFormatPrefix) + std::to_string(kSchemaVersion) +
                        "\" into it, else restore a backup",
                    "damaged_store");
  }
  if (schema > kSchemaVersion) {
    return NewerSchema(schema);
  }
  if (::access((path_ + "/CURRENT").c_str(), F_OK) != 0 && errno == ENOENT) {
    return CurrentLost(path_, "is missing");
  }
  return true;
}

// Without a FORMAT file, a store may be created here only if nothing can be lost by that.
Status DataDir::CheckNothingToLose() const {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path_));
  const bool has_current = std::ranges::find(names, "CURRENT") != names.end();
  for (const std::string& name : names) {
    // RocksDB creates CURRENT before the first of these, so CURRENT was lost, and FORMAT with it.
    if (HoldsJobs(name) && !has_current) {
      return DataLoss("data directory " + path_ + " is damaged: it holds " + name +
                          " but neither CURRENT nor FORMAT; restore a backup",
                      "damaged_store");
    }
    if (!HoldsJobs(name) && !MayPrecedeStore(name)) {
      return FailedPrecondition("data directory " + path_ + " is not empty (" + name +
                                    ") and holds no delayd store; set data_dir to an empty "
                                    "directory",
                                "data_dir_foreign");
    }
  }
  return OkStatus();
}

// A start can tell from its batches whether a store without FORMAT was ever complete. Here the
// store is not opened; but a directory with files of jobs in it is not the mount point of a missing
// disk.
Status DataDir::CheckNoJobs() const {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path_));
  const auto jobs = std::ranges::find_if(names, HoldsJobs);
  return jobs == names.end()
             ? OkStatus()
             : DataLoss("data directory " + path_ +
                            " is damaged, or was never complete: it holds " + *jobs +
                            " and its FORMAT file is missing, as in a backup that was not finished "
                            "and after a first start that was cut short; start delayd on it, which "
                            "tells the two apart",
                        "damaged_store");
}

Status DataDir::NewerSchema(uint64_t schema) const {
  return FailedPrecondition(
      "data directory " + path_ + " has schema " + std::to_string(schema) +
          " and this program knows " + std::to_string(kSchemaVersion) +
          "; run the newer delayd that wrote it, or, if there was none, its FORMAT "
          "file is damaged: write \"delayd-store schema " +
          std::to_string(kSchemaVersion) + "\" into it",
      "newer_schema");
}

Status FormatMissing(const std::string& directory, const std::string& what) {
  return DataLoss("data directory " + directory + " is damaged: " + what +
                      " and its FORMAT file is missing, as in a backup that was not finished; use "
                      "a finished backup, or, if nothing else is missing, write \"" +
                      std::string(kFormatPrefix) + std::to_string(kSchemaVersion) +
                      "\" into FORMAT",
                  "damaged_store");
}

Status FormatMissingToo(const Status& logs) {
  return logs.Followed("; its FORMAT file is missing too, and recover needs it: write \"" +
                       std::string(kFormatPrefix) + std::to_string(kSchemaVersion) +
                       "\" into FORMAT first");
}

Status CurrentLost(const std::string& directory, const std::string& what) {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  const auto is_manifest = [](const std::string& name) { return name.starts_with("MANIFEST-"); };
  // If there are several, the newest may be unfinished.
  const bool is_known = std::ranges::count_if(names, is_manifest) == 1;
  return DataLoss("data directory " + directory + " is damaged: " + directory + "/CURRENT " + what +
                      (is_known ? "; if nothing else is wrong, write the line \"" +
                                      *std::ranges::find_if(names, is_manifest) +
                                      "\" into it, else restore a backup"
                                : "; restore a backup"),
                  "damaged_store");
}

Status WriteFormatFile(const std::string& directory) {
  return WriteFileDurably(directory + std::string(kFormatName),
                          std::string(kFormatPrefix) + std::to_string(kSchemaVersion) + "\n");
}

}  // namespace delayd::storage
