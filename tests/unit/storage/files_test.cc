// Small files and directories, and what is said where the system refuses.
#include "storage/files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/data_dir.h"
#include "storage/posix_error.h"
#include "tests/support/refused_call.h"
#include "tests/support/temp_dir.h"

#include <sys/syscall.h>

namespace delayd::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(FilesTest, OfSlashesAloneOneIsLeft) {
  EXPECT_EQ(WithoutTrailingSlashes("//"), "/");
  EXPECT_EQ(WithoutTrailingSlashes("/data//"), "/data");
}

// The disk fails behind the open of the directory.
TEST(FilesTest, P9ADirectoryThatCannotBeListedIsNoEmptyOne) {
  const test::TempDir dir;
  const auto look = [&] {
    if (!test::RefuseCall(SYS_getdents64, EIO)) {
      std::_Exit(77);
    }
    const Status status = DataDir::RequireStore(dir.path());
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::_Exit(status.reason() == "storage_io" ? 0 : 1);
  };
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(0), "cannot read directory .*Input/output error");
}

// An xfs that was shut down fails already there. A start in another directory would serve no job.
TEST(FilesTest, OfADiskThatFailsNoOtherDirectoryIsAdvised) {
  const auto look = [] {
    if (!test::RefuseCall(SYS_newfstatat, EIO)) {
      std::_Exit(77);
    }
    const Status status = DataDir::Acquire("/srv/delayd-of-a-sick-disk").status();
    const bool advised = status.message().find("set data_dir") != std::string::npos;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::_Exit(advised ? 1 : 0);
  };
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(0), "Input/output error; look at the kernel's log");
}

TEST(PosixErrorTest, AReadOnlyFileSystemHasItsOwnAdvice) {
  errno = EROFS;
  const Status status = PosixError("cannot open", "/srv/LOCK");
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("/srv/LOCK"), HasSubstr("mount it writable"), HasSubstr("ReadWritePaths=")));
}

// Root, who is the owner or as good as that, meets this only where an attribute forbids it.
TEST(PosixErrorTest, AnAttributeThatForbidsWritingIsTold) {
  errno = EPERM;
  EXPECT_THAT(PosixError("cannot open", "/srv/LOCK").message(), HasSubstr("lsattr"));
  errno = EACCES;
  EXPECT_THAT(PosixError("cannot open", "/srv/LOCK").message(), Not(HasSubstr("lsattr")));
}

// As RocksDB's own files have it (rocks_status.cc).
TEST(PosixErrorTest, AFileThatMayNotGrowHasItsOwnAdvice) {
  errno = EFBIG;
  const Status status = PosixError("cannot write", "/srv/000012.sst");
  EXPECT_EQ(status.reason(), "storage_io");
  EXPECT_THAT(status.message(), HasSubstr("LimitFSIZE="));
}

}  // namespace
}  // namespace delayd::storage
