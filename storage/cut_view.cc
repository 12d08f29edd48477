#include "storage/cut_view.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/file_system.h>

namespace delayd::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class CutFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  CutFile(std::unique_ptr<rocksdb::FSSequentialFile> file, uint64_t end)
      : FSSequentialFileOwnerWrapper(std::move(file)), left_(end) {}

  IOStatus Read(size_t bytes,
                const IOOptions& options,
                Slice* result,
                char* scratch,
                IODebugContext* debug) override {
    IOStatus status = target()->Read(
        static_cast<size_t>(std::min<uint64_t>(bytes, left_)), options, result, scratch, debug);
    left_ -= status.ok() ? result->size() : 0;
    return status;
  }

  IOStatus Skip(uint64_t bytes) override {
    const uint64_t step = std::min(bytes, left_);
    left_ -= step;
    return target()->Skip(step);
  }

 private:
  uint64_t left_;
};

class EmptyFile final : public rocksdb::FSSequentialFile {
 public:
  IOStatus Read(size_t /*bytes*/,
                const IOOptions& /*options*/,
                Slice* result,
                char* /*scratch*/,
                IODebugContext* /*debug*/) override {
    *result = Slice();
    return IOStatus::OK();
  }

  IOStatus Skip(uint64_t /*bytes*/) override { return IOStatus::OK(); }
};

class CutFiles final : public rocksdb::FileSystemWrapper {
 public:
  CutFiles(const std::shared_ptr<rocksdb::FileSystem>& base,
           std::string directory,
           const RecoveryReport& report,
           bool accept_loss)
      : FileSystemWrapper(base), directory_(std::move(directory)), accept_loss_(accept_loss) {
    for (const RecoveryReport::Cut& cut : report.cuts) {
      ends_.emplace(directory_ + "/" + cut.file, cut.offset);
    }
    if (accept_loss) {
      gone_ = {report.gone_logs.begin(), report.gone_logs.end()};
    }
  }

  const char* Name() const override { return "CutFiles"; }

  IOStatus NewSequentialFile(const std::string& name,
                             const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* debug) override {
    if (IsGone(name)) {
      *result = std::make_unique<EmptyFile>();
      return IOStatus::OK();
    }
    IOStatus status = target()->NewSequentialFile(name, options, result, debug);
    if (const auto cut = ends_.find(name); status.ok() && cut != ends_.end()) {
      *result = std::make_unique<CutFile>(std::move(*result), cut->second);
    }
    return status;
  }

  // RocksDB asks for a log's size only to check whether it is shorter than the MANIFEST says. A
  // recovery opens without that check, which a read-only open of 7.8.3 does not survive.
  IOStatus GetFileSize(const std::string& name,
                       const IOOptions& options,
                       uint64_t* size,
                       IODebugContext* debug) override {
    const IOStatus status =
        IsGone(name) ? IOStatus::OK() : target()->GetFileSize(name, options, size, debug);
    if (status.ok() && accept_loss_ && name.ends_with(".log")) {
      *size = std::numeric_limits<uint64_t>::max();
    }
    return status;
  }

  IOStatus GetChildren(const std::string& directory,
                       const IOOptions& options,
                       std::vector<std::string>* names,
                       IODebugContext* debug) override {
    IOStatus status = target()->GetChildren(directory, options, names, debug);
    if (status.ok() && directory == directory_) {
      names->insert(names->end(), gone_.begin(), gone_.end());
    }
    return status;
  }

 private:
  bool IsGone(const std::string& path) const {
    return path.starts_with(directory_ + "/") && gone_.contains(path.substr(directory_.size() + 1));
  }

  const std::string directory_;
  std::map<std::string, uint64_t> ends_;  // by path
  std::set<std::string> gone_;            // logs, by name
  const bool accept_loss_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewCutView(rocksdb::Env* base,
                                         const std::string& directory,
                                         const RecoveryReport& report,
                                         bool accept_loss) {
  const auto files = (base != nullptr ? base : rocksdb::Env::Default())->GetFileSystem();
  return rocksdb::NewCompositeEnv(
      std::make_shared<CutFiles>(files, directory, report, accept_loss));
}

}  // namespace delayd::storage
