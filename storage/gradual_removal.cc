#include "storage/gradual_removal.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "storage/optional_thread.h"

namespace delayd::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr std::chrono::milliseconds kPause{10};
// If much is waiting, a step is at least this fraction of it: 10 GiB are gone in 9 seconds.
constexpr uint64_t kPartOfAll = 256;

class Remover {
 public:
  Remover(std::shared_ptr<rocksdb::FileSystem> files, uint64_t step_bytes)
      : files_(std::move(files)), step_bytes_(step_bytes) {}

  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;

  ~Remover() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_one();
    thread_.Join();
  }

  // False: there is no thread to remove the file piece by piece.
  bool Add(std::string path, uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (!thread_.Start([this] { Run(); })) {
        return false;
      }
      files_to_go_.push_back({std::move(path), bytes});
      bytes_to_go_ += bytes;
    }
    wake_.notify_one();
    return true;
  }

 private:
  struct Trash {
    std::string path;
    uint64_t bytes = 0;
  };

  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ending_ || !files_to_go_.empty(); });
      if (files_to_go_.empty()) {
        return;
      }
      const Trash file = files_to_go_.front();
      const uint64_t step = std::max(step_bytes_, bytes_to_go_ / kPartOfAll);
      uint64_t left = ending_ || file.bytes <= step ? 0 : file.bytes - step;
      lock.unlock();
      if (left == 0 || !Shorten(file.path, left)) {
        left = 0;
        files_->DeleteFile(file.path, IOOptions(), nullptr).PermitUncheckedError();
      }
      lock.lock();
      bytes_to_go_ -= file.bytes - left;
      if (left == 0) {
        files_to_go_.pop_front();
      } else {
        files_to_go_.front().bytes = left;
      }
      wake_.wait_for(lock, kPause, [this] { return ending_; });
    }
  }

  bool Shorten(const std::string& path, uint64_t bytes) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    return files_->ReopenWritableFile(path, rocksdb::FileOptions(), &file, nullptr).ok() &&
           file->Truncate(bytes, IOOptions(), nullptr).ok() &&
           file->Close(IOOptions(), nullptr).ok();
  }

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const uint64_t step_bytes_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Trash> files_to_go_;  // the first is being removed
  uint64_t bytes_to_go_ = 0;
  bool ending_ = false;
  OptionalThread thread_;  // started with the first large file
};

class GradualRemoval final : public rocksdb::FileSystemWrapper {
 public:
  GradualRemoval(const std::shared_ptr<rocksdb::FileSystem>& base,
                 std::string directory,
                 uint64_t step_bytes)
      : FileSystemWrapper(base),
        directory_(std::move(directory)),
        step_bytes_(step_bytes),
        remover_(base, step_bytes) {}

  const char* Name() const override { return "GradualRemoval"; }

  IOStatus DeleteFile(const std::string& path,
                      const IOOptions& options,
                      IODebugContext* debug) override {
    uint64_t bytes = 0;
    const bool is_ours = std::string_view(path).substr(0, path.find_last_of('/')) == directory_;
    const std::string trash = path + std::string(kTrashEnding);
    if (!is_ours || !target()->GetFileSize(path, options, &bytes, debug).ok() ||
        bytes <= step_bytes_ || !target()->RenameFile(path, trash, options, debug).ok()) {
      return target()->DeleteFile(path, options, debug);
    }
    // Nobody can give the file another name now: to RocksDB it is gone.
    uint64_t names = 0;
    if (!target()->NumFileLinks(trash, options, &names, debug).ok() || names != 1 ||
        !remover_.Add(trash, bytes)) {
      return target()->DeleteFile(trash, options, debug);
    }
    return IOStatus::OK();
  }

 private:
  const std::string directory_;
  const uint64_t step_bytes_;
  Remover remover_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> NewGradualRemoval(
    const std::shared_ptr<rocksdb::FileSystem>& base, std::string directory, uint64_t step_bytes) {
  return std::make_shared<GradualRemoval>(base, std::move(directory), step_bytes);
}

}  // namespace delayd::storage
