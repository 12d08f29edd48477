// Starts on a disk that has no room for them: what they leave behind.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/flush_room.h"
#include "tests/unit/storage/recovery_fixture.h"

#include <sys/stat.h>

namespace delayd::storage {
namespace {

using test::FaultFileSystem;
using test::IoCall;
using test::IoFault;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StartWithoutRoomTest : public RecoveryTest {
 protected:
  // A start whose n-th call of that kind finds no room.
  Status OpenWithoutRoom(IoCall call, uint64_t n) {
    const auto disk = std::make_shared<FaultFileSystem>();
    disk->FailCall(call, n, IoFault::kEnospc);
    const auto env = test::NewFaultEnv(disk);
    return OpenRocksJobStore({.path = path(), .env = env.get()}).status();
  }

  std::vector<std::string> Named(const std::string& prefix, const std::string& ending) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path())) {
      const std::string name = entry.path().filename();
      if (name.starts_with(prefix) && name.ends_with(ending)) {
        names.push_back(name);
      }
    }
    return names;
  }

  std::vector<std::string> Tables() const { return Named("", ".sst"); }
};

// Else the next start eats what was freed for it.
TEST_F(StartWithoutRoomTest, P9StartsThatFailForWantOfRoomLeaveNoTablesAndTellWhatIsShort) {
  for (const IoCall call : {IoCall::kCreate, IoCall::kAppend}) {
    fs::remove_all(path());
    Commit(1, 5);
    uint64_t failed = 0;
    for (Status status; !(status = OpenWithoutRoom(call, failed)).ok(); ++failed) {
      EXPECT_EQ(status.reason(), "disk_full") << status.message();
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr("; df shows "),
                        HasSubstr("iB free, so it is a quota, a thin disk or inodes"),
                        HasSubstr("; free some space, or inodes (df -i)")));
      EXPECT_THAT(Tables(), IsEmpty()) << test::IoCallName(call) << failed << status.message();
    }
    EXPECT_GE(failed, 2U) << "with the second a table was made";
  }
  EXPECT_EQ(Jobs(**Open()), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

TEST_F(StartWithoutRoomTest, P9WhatKilledStartsLeftGoesTooAndWhatTheMANIFESTKnowsStays) {
  Commit(1, 3);
  Commit(4, 6);
  const std::vector<std::string> known = Tables();
  ASSERT_FALSE(known.empty());
  WriteFile(path() + "/900000.sst", "half of a table");
  EXPECT_EQ(OpenWithoutRoom(IoCall::kCreate, 1).reason(), "disk_full");
  EXPECT_THAT(Tables(), ::testing::UnorderedElementsAreArray(known));
  EXPECT_EQ(Jobs(**Open()).size(), 6U);
}

constexpr uint64_t kPlentyFree = uint64_t{1} << 60;
constexpr off_t kAllocated = off_t{1} << 20;

void AllocateAhead(const std::string& file) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, kAllocated), 0);
  ::close(fd);
}

off_t AllocatedBytes(const std::string& file) {
  struct stat info {};

  EXPECT_EQ(::stat(file.c_str(), &info), 0);
  return info.st_blocks * 512;
}

// Has room for no table while a file is there.
class DiskWithLeftovers final : public rocksdb::FileSystemWrapper {
 public:
  explicit DiskWithLeftovers(
      std::vector<std::string> leftovers,
      uint64_t free = 1000,
      rocksdb::IOStatus error = rocksdb::IOStatus::NoSpace("No space left on device"))
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        leftovers_(std::move(leftovers)),
        free_(free),
        error_(std::move(error)) {}

  const char* Name() const override { return "DiskWithLeftovers"; }

  rocksdb::IOStatus GetFreeSpace(const std::string& /*path*/,
                                 const rocksdb::IOOptions& /*options*/,
                                 uint64_t* free,
                                 rocksdb::IODebugContext* /*debug*/) override {
    *free = IsFull() ? free_ : kPlentyFree;
    return rocksdb::IOStatus::OK();
  }

  rocksdb::IOStatus NewWritableFile(const std::string& name,
                                    const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    return name.ends_with(".sst") && IsFull()
               ? error_
               : target()->NewWritableFile(name, options, result, debug);
  }

 private:
  bool IsFull() const {
    return std::ranges::any_of(leftovers_, [](const auto& name) { return fs::exists(name); });
  }

  const std::vector<std::string> leftovers_;
  const uint64_t free_;  // while one is there
  const rocksdb::IOStatus error_;
};

TEST_F(StartWithoutRoomTest, P9WhatNobodyNeedsGoesBeforeAStartIsGivenUpForWantOfRoom) {
  Commit(1, 2);
  Commit(3, 3);
  for (const bool was_closed : {false, true}) {
    ASSERT_TRUE(!was_closed || (*Open())->Close().ok());
    std::vector<std::string> leftovers;
    for (const std::string name : {"900000.sst", "900001.sst.trash", "000001.log"}) {
      leftovers.push_back(path() + "/" + name);
      WriteFile(leftovers.back(), "nobody's");
    }
    const auto env = test::NewFaultEnv(std::make_shared<DiskWithLeftovers>(leftovers));
    const auto opened = OpenRocksJobStore({.path = path(), .env = env.get()});
    ASSERT_TRUE(opened.ok()) << was_closed << opened.status().message();
    EXPECT_EQ(Jobs(**opened), (std::vector<uint64_t>{1, 2, 3}));
  }
}

// A process that was killed has left it: as much as a log may hold.
TEST_F(StartWithoutRoomTest, P9WhatIsAllocatedBehindTheEndOfALogIsGivenBackWhereThereIsNoRoom) {
  Commit(1, 3);
  const std::string log = path() + "/" + Named("", ".log").back();
  const uintmax_t size = fs::file_size(log);
  AllocateAhead(log);
  const auto env =
      test::NewFaultEnv(std::make_shared<DiskWithLeftovers>(std::vector<std::string>{log}));
  EXPECT_EQ(OpenRocksJobStore({.path = path(), .env = env.get()}).status().reason(), "disk_full");
  EXPECT_LT(AllocatedBytes(log), kAllocated);
  EXPECT_EQ(fs::file_size(log), size);
  EXPECT_EQ(Jobs(**Open()), (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(StartWithoutRoomTest, P9WhereNothingCanGoNothingIsTouched) {
  Commit(1, 3);
  const std::string others = path() + "/notes";
  WriteFile(others, "somebody's");
  const auto env =
      test::NewFaultEnv(std::make_shared<DiskWithLeftovers>(std::vector<std::string>{others}));
  const Status status = OpenRocksJobStore({.path = path(), .env = env.get()}).status();
  EXPECT_EQ(status.reason(), "disk_full");
  EXPECT_THAT(status.message(), HasSubstr("a start needs 1MiB; free some space"));
  EXPECT_THAT(Named("", ".sst"), IsEmpty());
  EXPECT_TRUE(fs::exists(others));
  EXPECT_EQ(Jobs(**Open()), (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(StartWithoutRoomTest, WhereLessIsFreeThanItMayWriteItTellsHowMuch) {
  Commit(1, 5);
  const auto env = test::NewFaultEnv(std::make_shared<DiskWithLeftovers>(
      std::vector<std::string>{path()}, /*free=*/uint64_t{1} << 20));
  EXPECT_THAT(OpenRocksJobStore({.path = path(), .env = env.get()}).status().message(),
              HasSubstr("; a start may write up to 1025KiB there, and 1MiB are left; free some "));
}

TEST_F(StartWithoutRoomTest, OfAQuotaItSaysThatItIsToBeRaisedAndGivesBackWhatItCan) {
  Commit(1, 5);
  const std::string log = path() + "/" + Named("", ".log").back();
  AllocateAhead(log);
  const auto env = test::NewFaultEnv(
      std::make_shared<DiskWithLeftovers>(std::vector<std::string>{path()},
                                          kPlentyFree,
                                          rocksdb::IOStatus::IOError("Disk quota exceeded")));
  const Status status = OpenRocksJobStore({.path = path(), .env = env.get()}).status();
  EXPECT_EQ(status.reason(), "disk_full");
  EXPECT_THAT(status.message(), AllOf(HasSubstr("; df shows "), HasSubstr("; raise the quota, ")));
  EXPECT_LT(AllocatedBytes(log), kAllocated) << "the next start may have enough";
}

TEST_F(StartWithoutRoomTest, WhatIsRootsAloneIsNotFree) {
  Commit(1, 1);
  const auto env = test::NewFaultEnv(
      std::make_shared<DiskWithLeftovers>(std::vector<std::string>{path()}, kPlentyFree));
  const auto room = AskFlushRoom(path(), env.get());
  ASSERT_TRUE(room.ok());
  EXPECT_LT(room->free, kPlentyFree);
}

}  // namespace
}  // namespace delayd::storage
