// A backup that is cut short at every place of its making: the store it is taken of stays whole,
// and what there is of the copy is never taken for a store.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "tests/support/temp_dir.h"

#include <sys/wait.h>

namespace delayd::storage {
namespace {

Batch Numbered(uint64_t number) {
  Batch batch;
  batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
  return batch;
}

// Ends by the crash, or with an exit code.
int BackUpInAChild(const std::string& from, const std::string& to, const char* crash_at) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("DELAYD_CRASH_AT", crash_at, 1);  // NOLINT(concurrency-mt-unsafe)
    auto store = OpenRocksJobStore({.path = from});
    const bool done = store.ok() && (*store)->Commit(Numbered(7)).ok() &&
                      BackUpRocksJobStore(store->get(), to).ok();
    ::_exit(done ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// The number that was committed; 0 when the directory is refused or is a new, empty store.
uint64_t NumberIn(const std::string& path) {
  const auto store = OpenRocksJobStore({.path = path});
  std::string value;
  if (!store.ok() || !(*store)->Get(Table::kMeta, kBatchNumberKey, &value).ok()) {
    return 0;
  }
  return DecodeNumber(kBatchNumberKey, value).value();
}

bool HoldsTrash(const std::string& path) {
  return std::ranges::any_of(std::filesystem::directory_iterator(path), [](const auto& entry) {
    return entry.path().extension() == ".trash";
  });
}

TEST(BackupCrashTest, P9AHalfMadeCopyIsNeverTakenForAStore) {
  const auto places = std::to_array({"backup/named:1",
                                     "backup/copied:1",
                                     "backup/synced:1",
                                     "file/before_rename:2",
                                     "file/renamed:2"});
  const std::array<test::TempDir, places.size()> dirs;
  // All children first: a child of a process that has used RocksDB lacks its threads.
  for (size_t i = 0; i < places.size(); ++i) {
    const int status = BackUpInAChild(dirs.at(i).Sub("data"), dirs.at(i).Sub("copy"), places.at(i));
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << places.at(i);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string copy = dirs.at(i).Sub("copy");
    const bool whole = std::filesystem::exists(copy + "/FORMAT");
    EXPECT_EQ(whole, std::string(places.at(i)) == "file/renamed:2") << places.at(i);
    EXPECT_EQ(NumberIn(dirs.at(i).Sub("data")), 7U) << places.at(i);
    EXPECT_FALSE(HoldsTrash(dirs.at(i).Sub("data"))) << places.at(i);
    EXPECT_EQ(NumberIn(copy), whole ? 7U : 0U) << places.at(i);
  }
}

}  // namespace
}  // namespace delayd::storage
