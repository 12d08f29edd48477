#include "daemon/disk_reserve.h"

#include <fcntl.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "base/errno_text.h"
#include "base/size_text.h"
#include "base/unique_fd.h"
#include "daemon/config_values.h"
#include "daemon/log.h"

#include <sys/statvfs.h>

namespace delayd {
namespace {

constexpr uint64_t kFreeInodesMin = 96;

// `what` names the wanted figure in errors.
StatusOr<struct statvfs> AskDisk(const std::string& what, const std::string& directory) {
  struct statvfs info {};

  if (::statvfs(directory.c_str(), &info) != 0) {
    return Unavailable("cannot ask for the " + what + " of " + directory + ": " + ErrnoText(errno));
  }
  return info;
}

}  // namespace

StatusOr<uint64_t> FreeBytes(const std::string& directory) {
  DELAYD_ASSIGN_OR_RETURN(const struct statvfs info, AskDisk("free space", directory));
  if (info.f_blocks == 0) {
    return Unavailable("the file system of " + directory + " tells no sizes");
  }
  return uint64_t{info.f_bavail} * info.f_frsize;
}

StatusOr<uint64_t> FreeFiles(const std::string& directory) {
  DELAYD_ASSIGN_OR_RETURN(const struct statvfs info, AskDisk("inodes", directory));
  return info.f_files == 0 ? std::numeric_limits<uint64_t>::max() : uint64_t{info.f_favail};
}

bool IsReadOnly(const std::string& directory) {
  const StatusOr<struct statvfs> info = AskDisk("state", directory);
  if (info.ok() && (info->f_flag & ST_RDONLY) != 0) {
    return true;
  }
  // Newer kernels do not set that flag on an ext4 that they made read-only after an error, and none
  // sets it on a file system that was shut down, or whose server is gone (FUSE, NFS). Opening a
  // file of it for writing tells, and writes nothing. Nobody locks this file, so that the close
  // releases no lock.
  const UniqueFd file(
      ::open((directory + "/FORMAT").c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return !file.valid() && (errno == EROFS || errno == EIO || errno == ENOTCONN || errno == ESTALE);
}

bool DiskReserve::Look() {
  const Lack before = std::exchange(lack_, Judge());
  const bool has_changed = lack_ != before;
  if (has_changed) {
    refusal_ = Refusal();
  }
  return has_changed;
}

DiskReserve::Lack DiskReserve::Judge() {
  // First: a file system that takes no writes may not tell its free space either.
  if (options_.is_read_only && options_.is_read_only(options_.directory)) {
    return Lack::kWriting;
  }
  if (options_.reserve == 0) {
    return Lack::kNothing;
  }
  const StatusOr<uint64_t> free = options_.free_bytes(options_.directory);
  if (!free.ok()) {
    if (!std::exchange(unreadable_, true)) {
      log::Warn("the disk's free space is not known; storage.reserve does not guard",
                {{"detail", free.status().message()}});
    }
    return lack_ == Lack::kWriting ? Lack::kNothing : lack_;
  }
  unreadable_ = false;
  return JudgeRoom(*free);
}

DiskReserve::Lack DiskReserve::JudgeRoom(uint64_t free) const {
  const auto with_margin = [this](uint64_t least, Lack lack) {
    return least + (lack_ == lack ? least / 16 : 0);
  };
  const StatusOr<uint64_t> files = options_.free_files ? options_.free_files(options_.directory)
                                                       : std::numeric_limits<uint64_t>::max();
  if (files.ok() && *files < with_margin(kFreeInodesMin, Lack::kFiles)) {
    return Lack::kFiles;
  }
  return free < with_margin(options_.reserve, Lack::kBytes) ? Lack::kBytes : Lack::kNothing;
}

Status DiskReserve::Refusal() const {
  const std::string disk = "the disk of " + options_.directory;
  if (lack_ == Lack::kWriting) {
    return ResourceExhausted(
        "the file system of " + options_.directory +
            " is read-only, was shut down, or its server is gone, so no new job is taken, and the "
            "next change of any job ends the daemon; look at the kernel's log (dmesg), and mount "
            "it writable",
        "disk_read_only");
  }
  const std::string jobs = "Jobs that are there are handed out, acked and cancelled as ever";
  if (lack_ == Lack::kFiles) {
    return ResourceExhausted(disk + " has fewer than " + std::to_string(kFreeInodesMin) +
                                 " inodes left (df -i), so no new job is taken; remove files, or "
                                 "make the file system anew with more inodes. " +
                                 jobs,
                             "disk_full");
  }
  if (lack_ == Lack::kBytes) {
    return ResourceExhausted(disk + " has less free space than storage.reserve, " +
                                 FormatSize(options_.reserve) +
                                 ", so no new job is taken; free some space, or lower "
                                 "storage.reserve. " +
                                 jobs,
                             "disk_full");
  }
  return OkStatus();
}

}  // namespace delayd
