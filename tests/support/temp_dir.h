// tests/support/temp_dir.h — a directory that is gone when the test ends.
//
// Errors:  a failed check when the system refuses.
// Threads: one.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
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

// Directories made meanwhile, also by processes that are begun and die before they remove theirs,
// lie in one that goes with this.
class TempDirsWithin {
 public:
  TempDirsWithin() {
    const char* before = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    if (before != nullptr)
      before_ = before;
    ::setenv("TMPDIR", dir_.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }

  ~TempDirsWithin() {
    if (before_) {
      ::setenv("TMPDIR", before_->c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    } else {
      ::unsetenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    }
  }

  TempDirsWithin(const TempDirsWithin&) = delete;
  TempDirsWithin& operator=(const TempDirsWithin&) = delete;

 private:
  TempDir dir_;
  std::optional<std::string> before_;
};

}  // namespace delayd::test
