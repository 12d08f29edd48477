#include "storage/store_env.h"

#include <string>
#include <utility>

#include <rocksdb/system_clock.h>

#include "storage/checked_tables.h"
#include "storage/gradual_removal.h"
#include "storage/prewritten_log.h"

namespace delayd::storage {
namespace {

class StoreEnv final : public rocksdb::EnvWrapper {
 public:
  StoreEnv(rocksdb::Env* base, std::string directory, uint64_t removal_step_bytes)
      : EnvWrapper(base) {
    // What RocksDB really uses; the wrapper would go through its own adapters.
    file_system_ = NewPrewrittenLogs(NewCheckedTables(
        NewGradualRemoval(base->GetFileSystem(), std::move(directory), removal_step_bytes)));
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
                                          std::string directory,
                                          uint64_t removal_step_bytes) {
  return std::make_unique<StoreEnv>(
      base != nullptr ? base : rocksdb::Env::Default(), std::move(directory), removal_step_bytes);
}

}  // namespace delayd::storage
