// A disk that says of itself how much is free, whatever is; what is written to it still goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <rocksdb/file_system.h>

namespace delayd::storage {

class SmallDisk : public rocksdb::FileSystemWrapper {
 public:
  explicit SmallDisk(uint64_t free_bytes)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), free(free_bytes) {}

  const char* Name() const override { return "SmallDisk"; }

  rocksdb::IOStatus GetFreeSpace(const std::string& /*path*/,
                                 const rocksdb::IOOptions& /*options*/,
                                 uint64_t* result,
                                 rocksdb::IODebugContext* /*debug*/) override {
    *result = free;
    return rocksdb::IOStatus::OK();
  }

  std::atomic<uint64_t> free;
};

}  // namespace delayd::storage
