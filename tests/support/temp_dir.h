// tests/support/temp_dir.h — a directory that is gone when the test ends.
//
// Errors:  a failed check when the system refuses.
// Threads: one.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace delayd::test {

class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    path_ = std::string(base != nullptr ? base : "/tmp") + "/delayd-test-XXXXXX";
    DELAYD_CHECK(::mkdtemp(path_.data()) != nullptr);
  }

  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  std::string Sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace delayd::test
