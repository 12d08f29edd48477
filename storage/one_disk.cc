#include "storage/one_disk.h"

#include <fcntl.h>

#include <iterator>
#include <optional>

#include "base/unique_fd.h"

#include <linux/btrfs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace delayd::storage {
namespace {

// The identity of the btrfs in which the directory is; none if it is in another file system.
std::optional<std::string> BtrfsOf(const std::string& directory) {
  struct statfs info {};

  btrfs_ioctl_fs_info_args args{};
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fstatfs(fd.get(), &info) != 0 || info.f_type != BTRFS_SUPER_MAGIC ||
      ::ioctl(fd.get(), BTRFS_IOC_FS_INFO, &args) != 0) {
    return std::nullopt;
  }
  return std::string(std::begin(args.fsid), std::end(args.fsid));
}

}  // namespace

bool AreOnOneDisk(const std::string& a, const std::string& b) {
  struct stat a_info {};

  struct stat b_info {};

  // Directories of one disk have one device number, whatever mounts lie between them; only btrfs
  // gives each of its subvolumes another one.
  if (::stat(a.c_str(), &a_info) == 0 && ::stat(b.c_str(), &b_info) == 0 &&
      a_info.st_dev == b_info.st_dev) {
    return true;
  }
  const std::optional<std::string> btrfs = BtrfsOf(a);
  return btrfs && btrfs == BtrfsOf(b);
}

}  // namespace delayd::storage
