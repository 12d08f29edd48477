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

// RocksDB's own info log, which only people read. On a full disk 7.8 goes on writing after an
// error, and an assertion in Debian's build ends the process: so whatever cannot be written is left
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

  // The wrapper's own version would create the file in the file system below.
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

// RocksDB asks some things of the Env itself; these go to `files`, too.
class StoreEnv final : public rocksdb::EnvWrapper {
 public:
  StoreEnv(const std::shared_ptr<rocksdb::FileSystem>& files,
           const std::shared_ptr<rocksdb::SystemClock>& clock)
      : EnvWrapper(rocksdb::NewCompositeEnv(files)) {
    // Otherwise the wrapper would go through adapters of its own.
    file_system_ = files;
    system_clock_ = clock;
  }

  const char* Name() const override { return "StoreEnv"; }
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewStoreEnv(rocksdb::Env* base,
                                          const std::string& directory,
                                          uint64_t removal_step_bytes,
                                          std::shared_ptr<MergeRoom> room) {
  base = base != nullptr ? base : rocksdb::Env::Default();
  // The layers, from the disk upwards.
  std::shared_ptr<rocksdb::FileSystem> files = NewSameDirectory(base->GetFileSystem(), directory);
  files = NewGradualRemoval(files, directory, removal_step_bytes);
  files = NewManifestGuard(files, directory);
  files = NewCheckedTables(files);
  files = NewPrewrittenLogs(files);
  files = std::make_shared<InfoLogs>(files);
  if (room != nullptr) {
    files = NewFilesWithRoom(files, std::move(room));
  }
  return std::make_unique<StoreEnv>(files, base->GetSystemClock());
}

}  // namespace delayd::storage
