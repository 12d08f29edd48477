// The environment around a FaultFileSystem: its clock does not sleep, so that retries cost nothing.
#include <memory>

#include <rocksdb/env.h>
#include <rocksdb/system_clock.h>

#include "tests/support/fault_file_system.h"

namespace delayd::test {
namespace {

class ImpatientClock final : public rocksdb::SystemClockWrapper {
 public:
  ImpatientClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}

  const char* Name() const override { return "ImpatientClock"; }

  void SleepForMicroseconds(int /*micros*/) override {}
};

class FaultEnv final : public rocksdb::EnvWrapper {
 public:
  explicit FaultEnv(const std::shared_ptr<rocksdb::FileSystem>& file_system)
      : EnvWrapper(rocksdb::NewCompositeEnv(file_system)) {
    // What RocksDB really uses; the wrapper would go through its own adapters.
    file_system_ = file_system;
    system_clock_ = std::make_shared<ImpatientClock>();
  }

  const char* Name() const override { return "FaultEnv"; }

  void SleepForMicroseconds(int /*micros*/) override {}
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewFaultEnv(const std::shared_ptr<rocksdb::FileSystem>& file_system) {
  return std::make_unique<FaultEnv>(file_system);
}

}  // namespace delayd::test
