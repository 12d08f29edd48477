// storage/same_directory.h — is the store's directory still the one that was opened? Private to the
// room.
//
// What:    RocksDB keeps its log open and makes and removes all other files by name. Where another
//          directory comes to stand at the path, as in a restore while the daemon runs, an orderly
//          end would write the tables of one store into the other, and remove those that have the
//          same numbers: both would be lost. So no file is made, opened, renamed or removed there
//          any more, and the store ends as after a failed commit: the log, which has followed the
//          directory, holds all that was acknowledged.
// Errors:  kFailedPrecondition "data_dir_replaced"; what the system said, where it could not tell
//          which directory was opened.
// Threads: any.
// Cost:    one stat(2) for each commit and each file that is made, opened or removed: a
//          microsecond.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "base/status.h"

#include <sys/types.h>

namespace delayd::storage {

class SameDirectory {
 public:
  // Of the directory that is locked at `path` now; of one without a lock file all is well.
  explicit SameDirectory(std::string path);

  Status Check() const;

 private:
  std::string path_;
  std::string lock_path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  Status unknown_;
};

// A file system for RocksDB that touches files of `directory` only while it is the same one.
std::shared_ptr<rocksdb::FileSystem> NewSameDirectory(
    const std::shared_ptr<rocksdb::FileSystem>& base, const std::string& directory);

}  // namespace delayd::storage
