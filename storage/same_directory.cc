#include "storage/same_directory.h"

#include <cerrno>
#include <utility>

#include "storage/posix_error.h"

#include <sys/stat.h>

namespace delayd::storage {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class GuardedDirectory final : public rocksdb::FileSystemWrapper {
 public:
  GuardedDirectory(const std::shared_ptr<rocksdb::FileSystem>& base, const std::string& directory)
      : FileSystemWrapper(base), files_(directory + "/"), directory_(directory) {}

  const char* Name() const override { return "SameDirectory"; }

  IOStatus NewSequentialFile(const std::string& path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* debug) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->NewSequentialFile(path, options, result, debug) : status;
  }

  IOStatus NewRandomAccessFile(const std::string& path,
                               const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext* debug) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->NewRandomAccessFile(path, options, result, debug) : status;
  }

  IOStatus NewWritableFile(const std::string& path,
                           const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->NewWritableFile(path, options, result, debug) : status;
  }

  // Creates the file if there is none.
  IOStatus ReopenWritableFile(const std::string& path,
                              const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext* debug) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->ReopenWritableFile(path, options, result, debug) : status;
  }

  IOStatus ReuseWritableFile(const std::string& path,
                             const std::string& old_path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result,
                             IODebugContext* debug) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->ReuseWritableFile(path, old_path, options, result, debug)
                       : status;
  }

  IOStatus NewRandomRWFile(const std::string& path,
                           const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                           IODebugContext* debug) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->NewRandomRWFile(path, options, result, debug) : status;
  }

  IOStatus NewMemoryMappedFileBuffer(
      const std::string& path, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* result) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->NewMemoryMappedFileBuffer(path, result) : status;
  }

  IOStatus Truncate(const std::string& path,
                    size_t size,
                    const IOOptions& options,
                    IODebugContext* debug) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->Truncate(path, size, options, debug) : status;
  }

  IOStatus RenameFile(const std::string& from,
                      const std::string& to,
                      const IOOptions& options,
                      IODebugContext* debug) override {
    const IOStatus status = CheckFor(to);
    return status.ok() ? target()->RenameFile(from, to, options, debug) : status;
  }

  IOStatus LinkFile(const std::string& from,
                    const std::string& to,
                    const IOOptions& options,
                    IODebugContext* debug) override {
    const IOStatus status = CheckFor(from);
    return status.ok() ? target()->LinkFile(from, to, options, debug) : status;
  }

  IOStatus DeleteFile(const std::string& path,
                      const IOOptions& options,
                      IODebugContext* debug) override {
    const IOStatus status = CheckFor(path);
    return status.ok() ? target()->DeleteFile(path, options, debug) : status;
  }

 private:
  IOStatus CheckFor(const std::string& path) const {
    if (!path.starts_with(files_)) {
      return IOStatus::OK();
    }
    const Status status = directory_.Check();
    return status.ok() ? IOStatus::OK() : IOStatus::IOError(status.message());
  }

  const std::string files_;
  const SameDirectory directory_;
};

bool IsGone(int error) {
  return error == ENOENT || error == ENOTDIR;
}

}  // namespace

// The directory is identified by its lock file, which also disappears if the directory stays but
// all its contents are removed.
SameDirectory::SameDirectory(std::string path)
    : path_(std::move(path)), lock_path_(path_ + "/LOCK.delayd") {
  struct stat info {};

  if (::stat(lock_path_.c_str(), &info) == 0) {
    device_ = info.st_dev;
    inode_ = info.st_ino;
  } else if (!IsGone(errno)) {
    unknown_ = PosixError("cannot look at", lock_path_);
  }
}

Status SameDirectory::Check() const {
  struct stat info {};

  if (inode_ == 0) {
    return unknown_;
  }
  // A transient error says nothing about the directory; the code that uses the directory will
  // report it.
  if (::stat(lock_path_.c_str(), &info) == 0 ? info.st_dev == device_ && info.st_ino == inode_
                                             : !IsGone(errno)) {
    return OkStatus();
  }
  return FailedPrecondition(
      "the data directory " + path_ +
          " is not what was opened: it, or what was in it, was moved, replaced or removed while "
          "the daemon ran; nothing is written to what is there now, and what was opened has all "
          "that was acknowledged, wherever it is",
      "data_dir_replaced");
}

std::shared_ptr<rocksdb::FileSystem> NewSameDirectory(
    const std::shared_ptr<rocksdb::FileSystem>& base, const std::string& directory) {
  return std::make_shared<GuardedDirectory>(base, directory);
}

}  // namespace delayd::storage
