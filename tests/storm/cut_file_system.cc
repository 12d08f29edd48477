#include "tests/storm/cut_file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "base/errno_text.h"
#include "tests/support/process.h"

#include <sys/ioctl.h>

namespace delayd::storm {
namespace {

// The same of both. linux/ext4.h is not among the headers that user space gets.
constexpr unsigned long kShutdown = _IOR('X', 125, uint32_t);
constexpr uint32_t kWithoutLogFlush = 2;

// Empty, or what the program said.
std::string Run(const std::vector<std::string>& argv) {
  const test::ProcessResult result = test::RunProcess({.argv = argv});
  return result.exit_code == 0 ? "" : argv[0] + ": " + result.err + result.out;
}

// Others may hold a file system or a loop device for a moment: udev, a search through all files.
std::string RetryWhileBusy(const std::function<std::string()>& step) {
  std::string error;
  test::WaitUntil([&] { return (error = step()).empty(); }, std::chrono::seconds(20));
  return error;
}

std::string WhyNot(const std::string& what) {
  return what + ": " + ErrnoText(errno);
}

}  // namespace

CutFileSystem::CutFileSystem(const std::string& directory, std::string kind)
    : kind_(std::move(kind)), image_(directory + "/disk.img"), mount_(directory + "/disk") {}

CutFileSystem::~CutFileSystem() {
  if (mounted_) {
    Unmount();
  }
}

std::string CutFileSystem::Make() {
  if (::geteuid() != 0) {
    return "it takes root to mount a file system";
  }
  if (::access("/dev/loop-control", R_OK | W_OK) != 0) {
    return WhyNot("/dev/loop-control");
  }
  constexpr off_t kBytes = off_t{512} << 20;
  const int image = ::open(image_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (image < 0 || ::ftruncate(image, kBytes) != 0) {
    return WhyNot(image_);
  }
  ::close(image);
  const std::string mkfs = "/sbin/mkfs." + kind_;
  if (::access(mkfs.c_str(), X_OK) != 0) {
    return WhyNot(mkfs);
  }
  // Over what is there: the file is ours.
  const std::string force = kind_ == "xfs" ? "-f" : "-F";
  if (std::string error = Run({mkfs, "-q", force, image_}); !error.empty()) {
    return error;
  }
  std::filesystem::create_directory(mount_);
  return Mount();
}

std::string CutFileSystem::Mount() {
  std::string error = Run({"/bin/mount", "-o", "loop", image_, mount_});
  mounted_ = error.empty();
  return error;
}

std::string CutFileSystem::Unmount() {
  std::string error = RetryWhileBusy([this] { return Run({"/bin/umount", mount_}); });
  mounted_ = !error.empty();
  return error;
}

std::string CutFileSystem::Cut() const {
  const int root = ::open(mount_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    return WhyNot(mount_);
  }
  const int result = ::ioctl(root, kShutdown, &kWithoutLogFlush);
  std::string error = result == 0 ? "" : WhyNot("the shutdown ioctl");
  ::close(root);
  return error;
}

std::string CutFileSystem::MountAgain() {
  std::string error = Unmount();
  return error.empty() ? RetryWhileBusy([this] { return Mount(); }) : error;
}

}  // namespace delayd::storm
