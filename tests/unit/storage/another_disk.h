// Each directory is a disk of its own: nothing can be linked from one into another.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "tests/support/fault_file_system.h"

namespace delayd::storage {

class AnotherDisk final : public rocksdb::FileSystemWrapper {
 public:
  AnotherDisk() : FileSystemWrapper(std::make_shared<test::FaultFileSystem>()) {}

  const char* Name() const override { return "AnotherDisk"; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override {
    if (path.ends_with(".log") && on_log_opened) {
      on_log_opened();
    }
    return target()->NewSequentialFile(path, options, result, debug);
  }

  rocksdb::IOStatus LinkFile(const std::string& from,
                             const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
    const bool is_one = from.substr(0, from.rfind('/')) == to.substr(0, to.rfind('/'));
    return is_one && has_links ? target()->LinkFile(from, to, options, debug)
                               : rocksdb::IOStatus::NotSupported("No cross FS links allowed");
  }

  bool has_links = true;
  std::function<void()> on_log_opened;  // as before its files are named
};

}  // namespace delayd::storage
