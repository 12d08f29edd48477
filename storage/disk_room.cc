#include "storage/disk_room.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include <linux/magic.h>
#include <sys/vfs.h>

namespace delayd::storage {
namespace {

bool IsInMemory(int fd) {
  struct statfs info {};

  return ::fstatfs(fd, &info) == 0 && info.f_type == TMPFS_MAGIC;
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

}  // namespace delayd::storage
