// tests/storm/cut_file_system.h — a real ext4 or XFS on a loop device whose power can be cut.
//
// What:    Cut stops the file system at once, without writing its journal (EXT4_IOC_SHUTDOWN,
//          XFS_IOC_GOINGDOWN), as a power cut does; then it is taken down and mounted again, which
//          replays the journal.
//          What had reached the loop file stays: a disk that forgets its cache is not seen here.
//          An fsync that is under way during Cut may return success and be lost (a plain loop of
//          write and fdatasync loses its last record in about one cut of five): hold still whoever
//          writes before the cut.
// Errors:  texts; Make says why the machine does not allow it.
// Threads: one.
// Cost:    about 30 ms a cut.
#pragma once

#include <string>

namespace delayd::storm {

class CutFileSystem {
 public:
  // `directory` gets the image and the mount point; `kind` is ext4 or xfs.
  CutFileSystem(const std::string& directory, std::string kind);
  ~CutFileSystem();
  CutFileSystem(const CutFileSystem&) = delete;
  CutFileSystem& operator=(const CutFileSystem&) = delete;

  // Empty, or why it cannot be.
  std::string Make();
  // Ends all writing at once. Nobody may be inside an fsync.
  std::string Cut() const;
  // Once nobody uses it any more.
  std::string MountAgain();

  std::string path() const { return mount_; }

 private:
  std::string Mount();
  std::string Unmount();

  const std::string kind_;
  const std::string image_;
  const std::string mount_;
  bool mounted_ = false;
};

}  // namespace delayd::storm
