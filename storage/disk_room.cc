#include "storage/disk_room.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/size_text.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;

bool IsInMemory(int fd) {
  struct statfs info {};

  return ::fstatfs(fd, &info) == 0 && info.f_type == TMPFS_MAGIC;
}

// ext4 releases the space at the ftruncate, xfs at the fallocate.
void CutToItsEnd(const fs::path& path) {
  // More than anything ever allocates ahead.
  constexpr off_t kAheadMax = off_t{1} << 30;
  constexpr blkcnt_t kBlock = 512;

  struct stat file {};

  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    return;
  }
  if (::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_blocks * kBlock > file.st_size &&
      ::ftruncate(fd, file.st_size) == 0) {
    ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, file.st_size, kAheadMax);
  }
  ::close(fd);
}

}  // namespace

int AskForRoom(const std::string& directory, uint64_t bytes) {
  const int fd = ::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) {
    return 0;
  }
  const bool refused =
      !IsInMemory(fd) && ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0;
  const int error = refused ? errno : 0;
  ::close(fd);
  return error == ENOSPC || error == EDQUOT ? error : 0;
}

std::optional<uint64_t> FreeForAll(const std::string& directory) {
  struct statvfs info {};

  return ::statvfs(directory.c_str(), &info) == 0 && info.f_blocks != 0
             ? std::optional(uint64_t{info.f_bavail} * info.f_frsize)
             : std::nullopt;
}

std::string WhyRefused(const std::string& directory, uint64_t free) {
  struct statvfs info {};

  const bool counts_inodes = ::statvfs(directory.c_str(), &info) == 0 && info.f_files != 0;
  return "df shows " + FormatSize((free >> 20) << 20) +
         " free, so it is a quota, a thin disk or inodes" +
         (counts_inodes ? " (" + std::to_string(info.f_favail) + " left)" : "");
}

void GiveBackAllocated(const std::string& directory) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.ends_with(".log") || name.starts_with("MANIFEST-")) {
      CutToItsEnd(it->path());
    }
  }
}

}  // namespace delayd::storage
