#include "storage/store_env.h"

#include <rocksdb/system_clock.h>

#include "storage/checked_tables.h"
#include "storage/prewritten_log.h"

namespace delayd::storage {
namespace {

class StoreEnv final : public rocksdb::EnvWrapper {
 public:
  explicit StoreEnv(rocksdb::Env* base) : EnvWrapper(base) {
    // What RocksDB really uses; the wrapper would go through its own adapters.
    file_system_ = NewPrewrittenLogs(NewCheckedTables(base->GetFileSystem()));
    system_clock_ = base->GetSystemClock();
  }

  const char* Name() const override { return "StoreEnv"; }
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewStoreEnv(rocksdb::Env* base) {
  return std::make_unique<StoreEnv>(base != nullptr ? base : rocksdb::Env::Default());
}

}  // namespace delayd::storage
