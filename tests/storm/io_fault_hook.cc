// The store's environment in the daemon that storms kill: with DELAYD_IO_FAULT=CALL:N:FAULT the
// N-th such call of its file system fails, once, and is named on stderr (tests/storm/io_faults.h).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <rocksdb/env.h>

#include "base/check.h"
#include "storage/merge_room.h"
#include "tests/storm/io_faults.h"
#include "tests/support/fault_file_system.h"

namespace delayd::storage {

// storage/store_env.cc, which is compiled under this name here.
std::unique_ptr<rocksdb::Env> NewRealStoreEnv(rocksdb::Env* base,
                                              const std::string& directory,
                                              uint64_t removal_step_bytes,
                                              std::shared_ptr<MergeRoom> room);

namespace {

rocksdb::Env* FaultyDisk(const char* fault) {
  static std::unique_ptr<rocksdb::Env> env;
  const auto disk = std::make_shared<test::FaultFileSystem>();
  disk->OnStrike([](const std::string& what) {
    std::fprintf(stderr, "%s%s\n", storm::kIoFaultLine, what.c_str());
  });
  DELAYD_CHECK(storm::PlanIoFault(fault, disk.get()));
  env = rocksdb::NewCompositeEnv(disk);
  return env.get();
}

}  // namespace

std::unique_ptr<rocksdb::Env> NewStoreEnv(rocksdb::Env* base,
                                          const std::string& directory,
                                          uint64_t removal_step_bytes,
                                          std::shared_ptr<MergeRoom> room) {
  const char* fault = std::getenv("DELAYD_IO_FAULT");  // NOLINT(concurrency-mt-unsafe)
  return NewRealStoreEnv(
      fault != nullptr ? FaultyDisk(fault) : base, directory, removal_step_bytes, std::move(room));
}

}  // namespace delayd::storage
