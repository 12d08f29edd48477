// The MANIFEST that a store opens with is removed by nobody; io_fault_test asks RocksDB itself.
#include "storage/manifest_guard.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;

class ManifestGuardTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = dir_.Sub(name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  bool IsRemoved(const std::string& path) {
    const bool said = files_->DeleteFile(path, rocksdb::IOOptions(), nullptr).ok();
    EXPECT_EQ(fs::exists(path), !said);
    return said;
  }

  test::TempDir dir_;
  std::shared_ptr<rocksdb::FileSystem> files_ =
      NewManifestGuard(rocksdb::FileSystem::Default(), dir_.path());
};

TEST_F(ManifestGuardTest, P9WhatCurrentNamesStays) {
  const std::string in_use = Write("MANIFEST-000025", "25");
  const std::string before = Write("MANIFEST-000005", "5");
  const std::string failed = Write("MANIFEST-000041", "41");
  Write("CURRENT", "MANIFEST-000025\n");
  EXPECT_FALSE(IsRemoved(in_use));
  EXPECT_TRUE(IsRemoved(before));
  EXPECT_TRUE(IsRemoved(failed));
}

TEST_F(ManifestGuardTest, P9NothingIsRemovedWhereCurrentCannotBeRead) {
  const std::string one = Write("MANIFEST-000025", "25");
  EXPECT_FALSE(IsRemoved(one));
}

TEST_F(ManifestGuardTest, OtherFilesAndOtherDirectoriesAreNoAffairOfIt) {
  Write("CURRENT", "MANIFEST-000025\n");
  EXPECT_TRUE(IsRemoved(Write("000025.log", "")));
  fs::create_directory(dir_.Sub("backup"));
  EXPECT_TRUE(IsRemoved(Write("backup/MANIFEST-000025", "25")));
}

}  // namespace
}  // namespace delayd::storage
