// Backups that fail: of each the store knows nothing, and nothing is left.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "tests/unit/storage/another_disk.h"
#include "tests/unit/storage/recovery_fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace {

// Calls on what lies below this path fail so, from the n-th on; empty: none does.
std::string broken;    // NOLINT: read where C calls us
int broken_as = 0;     // NOLINT
int calls_left = 0;    // NOLINT
bool for_good = true;  // NOLINT: or once

bool Fails(const std::string& path) {
  if (broken.empty() || !path.starts_with(broken) || calls_left-- > 0) {
    return false;
  }
  if (!for_good) {
    broken.clear();
  }
  errno = broken_as;
  return true;
}

std::string PathOf(int fd) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

}  // namespace

// These stand before the C library's.
extern "C" int access(const char* path, int mode) noexcept {
  return Fails(path) ? -1 : ::faccessat(AT_FDCWD, path, mode, 0);
}

extern "C" char* realpath(const char* path, char* /*resolved*/) noexcept {
  return Fails(path) ? nullptr : ::canonicalize_file_name(path);
}

extern "C" int chmod(const char* path, mode_t mode) noexcept {
  return Fails(path) ? -1 : ::fchmodat(AT_FDCWD, path, mode, 0);
}

extern "C" ssize_t write(int fd, const void* bytes, size_t size) {
  return !broken.empty() && Fails(PathOf(fd)) ? -1 : ::syscall(SYS_write, fd, bytes, size);
}

namespace delayd::storage {
namespace {

using ::testing::HasSubstr;

class BackupFailureTest : public RecoveryTest {
 protected:
  BackupFailureTest() {
    env_ = rocksdb::NewCompositeEnv(std::make_shared<AnotherDisk>());
    Commit(1, 20, 10'000);
    store_ = Open().value();
  }

  ~BackupFailureTest() override { broken.clear(); }

  void Break(const std::string& path, int error, int calls, bool from_then_on) {
    broken = path;
    broken_as = error;
    calls_left = calls;
    for_good = from_then_on;
  }

  Status BackUp() { return BackUpRocksJobStore(store_.get(), dir_.Sub("disk/copy")); }

  bool IsNothingLeft() const { return fs::is_empty(dir_.Sub("disk")); }

  const bool made_ = fs::create_directory(dir_.Sub("disk"));
  std::unique_ptr<JobStore> store_;
};

// RocksDB asserts that such a disk has other errors.
TEST_F(BackupFailureTest, ADiskThatGoesAwayMeanwhileFailsTheBackupAndNotTheProcess) {
  Break(dir_.Sub("disk/copy"), ENOTCONN, 3, true);
  const Status status = BackUp();
  EXPECT_EQ(status.reason(), "storage_io");
  EXPECT_THAT(status.message(),
              HasSubstr("Transport endpoint is not connected; the server of the file system is "
                        "gone"));
  broken.clear();
  EXPECT_TRUE(BackUp().ok());
}

TEST_F(BackupFailureTest, WhateverFailsNothingIsLeftAndTheNextOneWorks) {
  int failed = 0;
  while (true) {
    Break(dir_.Sub("disk/copy"), ENOSPC, failed, false);
    const Status status = BackUp();
    broken.clear();
    if (status.ok()) {
      break;
    }
    EXPECT_TRUE(IsNothingLeft()) << failed << ": " << status.message();
    ++failed;
  }
  EXPECT_GT(failed, 8);
  EXPECT_EQ(Jobs(**OpenRocksJobStore({.path = dir_.Sub("disk/copy"), .env = env_.get()})).size(),
            20U);
}

TEST_F(BackupFailureTest, AFileSystemWithoutModesIsFoundBeforeAnythingIsCopied) {
  Break(dir_.Sub("disk/copy"), EPERM, 0, true);
  const Status status = BackUp();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("a file system that has owners and modes"));
  EXPECT_TRUE(IsNothingLeft());
}

// A flush that gets no file fails the store.
TEST_F(BackupFailureTest, WithoutFilesToOpenTheBackupIsRefusedAndTheStoreGoesOn) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto first_free = static_cast<rlim_t>(UniqueFd(::open("/", O_RDONLY | O_CLOEXEC)).get());
  // UBSan takes a pipe to look at an object that it has not seen before.
  for (uint64_t room = 4, refused = 0;; ++room) {
    Batch batch;
    batch.Put(Table::kTimers, Key(100 + room), "record");
    batch.Put(Table::kIndex, IndexKey(JobId{100 + room}), "place");
    batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, 100 + room));
    ASSERT_TRUE(store_->Commit(batch).ok()) << room;
    const rlimit low{.rlim_cur = first_free + room, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    const Status status = BackUp();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    if (status.ok()) {
      EXPECT_GT(refused, 8U);
      break;
    }
    ++refused;
    EXPECT_EQ(status.reason(), "storage_io") << status.message();
    EXPECT_THAT(status.message(), HasSubstr("raise the limit of open files"));
    EXPECT_TRUE(IsNothingLeft()) << room;
  }
  EXPECT_TRUE(store_->Close().ok());
}

TEST_F(BackupFailureTest, AStopEndsIt) {
  int pieces = 0;
  const Status status =
      BackUpRocksJobStore(store_.get(), dir_.Sub("disk/copy"), [&pieces] { return ++pieces < 3; });
  EXPECT_EQ(status.reason(), "stopped");
  EXPECT_EQ(pieces, 3);
  EXPECT_TRUE(IsNothingLeft());
}

TEST_F(BackupFailureTest, WhereTheCopyIsRemovedMeanwhileItSaysSo) {
  const Status status = BackUpRocksJobStore(store_.get(), dir_.Sub("disk/copy"), [this] {
    fs::remove_all(dir_.Sub("disk"));
    return true;
  });
  EXPECT_EQ(status.reason(), "storage_io") << status.message();
  EXPECT_THAT(status.message(),
              HasSubstr("what is in " + dir_.Sub("disk") +
                        " was removed while the backup was "
                        "written: leave it there, and back up again"));
  fs::create_directory(dir_.Sub("disk"));
  EXPECT_TRUE(BackUp().ok());
}

TEST_F(BackupFailureTest, AdviceOnRightsIsGivenWhereTheyAreMissing) {
  for (const int error : {EACCES, EPERM}) {
    Break(dir_.Sub("disk"), error, 0, true);
    EXPECT_THAT(BackUp().message(), HasSubstr("let the daemon write to " + dir_.Sub("disk")));
    EXPECT_EQ(BackUp().code(), StatusCode::kPermissionDenied);
  }
  for (const int error : {ENOTCONN, EIO}) {
    Break(dir_.Sub("disk"), error, 0, true);
    EXPECT_EQ(BackUp().reason(), "storage_io") << error;
  }
}

// As an xfs does that was shut down.
TEST_F(BackupFailureTest, WhereTheDirectoriesAboveCannotBeLookedAtTheDiskIs) {
  Break(dir_.Sub("disk"), EIO, 1, true);
  EXPECT_THAT(BackUp().message(),
              HasSubstr("cannot look at the directories above " + dir_.Sub("disk/copy") +
                        ": Input/output error; look at the kernel's log (dmesg)"));
}

TEST_F(BackupFailureTest, NobodyIsToldToOpenWhatGoesWithTheService) {
  for (const std::string parent : {"/tmp", "/var/tmp", "/dev/shm"}) {
    Break(parent + "/", EROFS, 0, true);
    const Status status = BackUpRocksJobStore(store_.get(), parent + "/delayd-copy");
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(status.message(), HasSubstr("goes with it; name a directory elsewhere"));
    EXPECT_THAT(status.message(), ::testing::Not(HasSubstr("ReadWritePaths")));
  }
}

TEST_F(BackupFailureTest, NorToUseWhatGoesWithTheMachinesNextStart) {
  ::setenv(
      "RUNTIME_DIRECTORY", ("/run/other:" + fs::canonical(dir_.Sub("disk")).string()).c_str(), 1);
  const Status status = BackUp();
  ::unsetenv("RUNTIME_DIRECTORY");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("is kept in memory"));
  EXPECT_TRUE(IsNothingLeft());
  EXPECT_TRUE(BackUp().ok());
}

}  // namespace
}  // namespace delayd::storage
