// What the store itself makes durable, and before what: the files beside RocksDB's go to the system
// without its file system, so no simulated loss of power reaches them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "storage/batch_floor.h"
#include "storage/data_dir.h"
#include "tests/unit/storage/recovery_fixture.h"

#include <sys/syscall.h>

namespace {

// Of a database's own threads, too.
std::mutex trace_mutex;          // NOLINT: where C calls us
std::vector<std::string> trace;  // NOLINT

void Note(const std::string& what, const std::string& path) {
  const std::scoped_lock lock(trace_mutex);
  trace.push_back(what + " " + path);
}

void NoteSync(int fd) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  Note("sync", {path.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))});
}

}  // namespace

// These stand before the C library's.
extern "C" int fsync(int fd) {
  NoteSync(fd);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" int fdatasync(int fd) {
  NoteSync(fd);
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

extern "C" int truncate(const char* path, off_t size) noexcept {
  Note("truncate", path);
  return static_cast<int>(::syscall(SYS_truncate, path, size));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  Note("rename", to);
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace delayd::storage {
namespace {

using ::testing::ElementsAre;

class SyncOrderTest : public RecoveryTest {
 protected:
  SyncOrderTest() { Forget(); }

  static void Forget() {
    const std::scoped_lock lock(trace_mutex);
    trace.clear();
  }

  // Paths in the test's directory; itself is ".".
  std::vector<std::string> Trace() const {
    const std::scoped_lock lock(trace_mutex);
    std::vector<std::string> lines;
    for (const std::string& line : trace) {
      const size_t begin = line.find(' ') + 1;
      const std::string name = fs::path(line.substr(begin)).lexically_relative(dir_.path());
      lines.push_back(line.substr(0, begin) + name);
    }
    return lines;
  }

  std::string LogName() const { return fs::path(Log()).filename().string(); }
};

TEST_F(SyncOrderTest, P9WhatATornTailHadIsOnTheDiskBeforeItIsCut) {
  Commit(1, 5);
  const std::string log = LogName();
  WriteFile(Log(), ReadFile(Log()) + "half of a record");
  Forget();
  RecoveryReport report;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kTornTails, &report).ok());
  ASSERT_EQ(report.cuts.size(), 1U);
  EXPECT_THAT(Trace(),
              ElementsAre("sync data/" + report.cuts.front().copy,
                          "sync data/damaged",
                          "sync data",
                          "truncate data/" + log,
                          "sync data/" + log));
}

TEST_F(SyncOrderTest, P9WhatIsGivenUpIsOnTheDiskBeforeItIsCut) {
  Commit(1, 30);
  const std::string log = LogName();
  const std::string whole = ReadFile(Log());
  WriteFile(Log(), Flipped(whole, whole.size() / 2));
  Forget();
  RecoveryReport report;
  ASSERT_TRUE(RecoverLogs(path(), LogRepair::kAcceptLoss, &report).ok());
  ASSERT_EQ(report.cuts.size(), 1U);
  EXPECT_THAT(Trace(),
              ElementsAre("sync data/" + report.cuts.front().copy,
                          "sync data/damaged",
                          "sync data",
                          "sync data/RECOVERY.tmp",
                          "rename data/RECOVERY",
                          "sync data",
                          "truncate data/" + log,
                          "sync data/" + log));
  Forget();
  ASSERT_TRUE(EndRecovery(path()).ok());
  EXPECT_THAT(Trace(), ElementsAre("sync data"));
}

TEST_F(SyncOrderTest, DirectoriesThatAreMadeAreDurableInThoseAbove) {
  ASSERT_TRUE(DataDir::Acquire(dir_.Sub("above/data"), false).ok());
  EXPECT_THAT(Trace(), ElementsAre("sync .", "sync above"));
}

TEST_F(SyncOrderTest, P9AFloorThatIsSetIsDurable) {
  ASSERT_TRUE(BatchFloor(dir_.path()).Set(7).ok());
  EXPECT_THAT(Trace(), ElementsAre("sync BATCH"));
}

TEST_F(SyncOrderTest, P9ABackupIsOnTheDiskBeforeItIsAStore) {
  Commit(1, 5);
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  Forget();
  ASSERT_TRUE(BackUpRocksJobStore(store->get(), dir_.Sub("backup")).ok());
  const std::vector<std::string> lines = Trace();
  ASSERT_GE(lines.size(), 3U);
  const std::vector<std::string> end(lines.end() - 3, lines.end());
  EXPECT_THAT(end, ElementsAre("sync backup/FORMAT.tmp", "rename backup/FORMAT", "sync backup"));
  const std::vector<std::string> before(lines.begin(), lines.end() - 3);
  EXPECT_THAT(before, ::testing::Contains("sync ."));
  for (const auto& entry : fs::directory_iterator(dir_.Sub("backup"))) {
    const std::string name = entry.path().filename().string();
    if (name != "FORMAT") {
      EXPECT_THAT(before, ::testing::Contains("sync backup/" + name));
    }
  }
}

}  // namespace
}  // namespace delayd::storage
