// storage/same_directory.h — is the store's directory still the one that was opened? Private to the
// room.
//
// What:    RocksDB keeps its log open, and creates and removes all other files by name. If another
//          directory takes the place at the path, as in a restore while the daemon runs, an orderly
//          shutdown would write the tables of one store into the other and remove those with the
//          same numbers: both would be lost. So from then on no file is created, opened, renamed or
//          removed there, and the store ends as after a failed commit. The log, which has moved
//          with the old directory, holds all that was acknowledged.
// Errors:  kFailedPrecondition "data_dir_replaced"; the system's error if it could not tell which
//          directory was opened.
// Threads: any.
// Cost:    one stat(2) for each commit and for each file that is created, opened or removed: a
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
  // Remembers the directory that is locked at `path` now. If it has no lock file, every check
  // passes.
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
