#include "storage/store_env.h"

#include <string>
#include <utility>

#include <rocksdb/system_clock.h>

#include "storage/checked_tables.h"
#include "storage/gradual_removal.h"
#include "storage/manifest_guard.h"
#include "storage/prewritten_log.h"
#include "storage/same_directory.h"

namespace delayd::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// RocksDB's own log, which is only to be read by people. On a full disk 7.8 writes on after an
// error, and Debian's build ends the process by an assertion: what cannot be written of it is left
// out.
class InfoLog final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  explicit InfoLog(std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)) {}

  IOStatus Append(const rocksdb::Slice& data,
                  const IOOptions& options,
                  IODebugContext* debug) override {
    target()->Append(data, options, debug).PermitUncheckedError();
    return IOStatus::OK();
  }

  IOStatus Append(const rocksdb::Slice& data,
                  const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
};

class InfoLogs final : public rocksdb::FileSystemWrapper {
 public:
  explicit InfoLogs(const std::shared_ptr<rocksdb::FileSystem>& base) : FileSystemWrapper(base) {}

  const char* Name() const override { return "InfoLogs"; }

  // The wrapper's would make the file in the file system below.
  IOStatus NewLogger(const std::string& name,
                     const IOOptions& options,
                     std::shared_ptr<rocksdb::Logger>* result,
                     IODebugContext* debug) override {
    return FileSystem::NewLogger(name, options, result, debug);
  }

  IOStatus NewWritableFile(const std::string& name,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(name, options, result, debug);
    if (status.ok() && name.ends_with("/LOG")) {
      *result = std::make_unique<InfoLog>(std::move(*result));
    }
    return status;
  }
};

class StoreEnv final : public rocksdb::EnvWrapper {
 public:
  StoreEnv(rocksdb::Env* base,
           const std::string& directory,
           uint64_t removal_step_bytes,
           std::shared_ptr<MergeRoom> room)
      : EnvWrapper(base) {
    // What RocksDB really uses; the wrapper would go through its own adapters.
    file_system_ = std::make_shared<InfoLogs>(NewPrewrittenLogs(NewCheckedTables(NewManifestGuard(
        NewGradualRemoval(
            NewSameDirectory(base->GetFileSystem(), directory), directory, removal_step_bytes),
        directory))));
    if (room != nullptr) {
      file_system_ = NewFilesWithRoom(file_system_, std::move(room));
    }
    system_clock_ = base->GetSystemClock();
  }

  const char* Name() const override { return "StoreEnv"; }

  // RocksDB removes its files through the environment.
  rocksdb::Status DeleteFile(const std::string& path) override {
    return file_system_->DeleteFile(path, rocksdb::IOOptions(), nullptr);
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewStoreEnv(rocksdb::Env* base,
                                          const std::string& directory,
                                          uint64_t removal_step_bytes,
                                          std::shared_ptr<MergeRoom> room) {
  return std::make_unique<StoreEnv>(base != nullptr ? base : rocksdb::Env::Default(),
                                    directory,
                                    removal_step_bytes,
                                    std::move(room));
}

}  // namespace delayd::storage
