// recover --accept-loss, killed at every place of its way: the store stays shut until another is
// done, which tells what the first gave up and leaves the same store.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/store_json.h"
#include "storage/log_scan.h"
#include "storage/numbered_files.h"
#include "storage/recovery.h"
#include "storage/rocks_job_store.h"
#include "storage/verify.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/sample_store.h"

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;
using protocol::RecoverResult;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kFirstId = 20;
constexpr uint64_t kDamagedId = 23;
constexpr uint64_t kEndId = 30;

class RecoverCrashTest : public ::testing::Test {
 protected:
  // One job a batch; of two logs the older is damaged in the middle.
  RecoverCrashTest() {
    {
      auto store = OpenRocksJobStore({.path = master()});
      EXPECT_TRUE((*store)->Commit(WholeStore()).ok());
      EXPECT_TRUE((*store)->Close().ok());
    }
    {
      auto store = OpenRocksJobStore({.path = master()});
      for (uint64_t id = kFirstId; id < kEndId; ++id) {
        Batch batch;
        PutTimer(&batch, Record(id, kOrders));
        PutCounts(
            &batch, kOrders, {.pending = static_cast<uint32_t>(id - kFirstId + 3), .dead = 1});
        // Far enough for BATCH to tell of the loss, too.
        batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, id));
        EXPECT_TRUE((*store)->Commit(batch).ok());
      }
    }
    const std::string path = master() + "/" + LogNames(master())->back();
    std::string log = test::ReadFile(path);
    std::string half = log;
    half[log.find(Record(kDamagedId + 2, kOrders).payload)] ^= 1;
    const uint64_t cut = *ScanLog(half).damaged_at;
    test::WriteFile(master() + "/900000.log", log.substr(cut));
    log.resize(cut);
    log[log.find(Record(kDamagedId, kOrders).payload)] ^= 1;
    test::WriteFile(path, log);
  }

  std::string master() const { return dir_.Sub("master"); }

  std::string copy() const { return dir_.Sub("copy"); }

  test::ProcessResult Recover(const std::map<std::string, std::string>& env) const {
    test::Process run({.argv = {std::string(DELAYD_BIN_DIR) + "/delayd_crashing",
                                "--data-dir",
                                copy(),
                                "--recover",
                                "--accept-loss"},
                       .env = env});
    // Wait would end one that hangs by the signal of a crash.
    EXPECT_TRUE(test::WaitUntil([&run] { return run.HasEnded(); })) << "it hangs";
    return run.Wait();
  }

  static RecoverResult ResultOf(const test::ProcessResult& run) {
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    const size_t end = run.out.find_last_not_of('\n') + 1;
    const size_t begin = run.out.rfind('\n', end - 1) + 1;  // 0 when it is the only line
    const auto line = protocol::ParseStoreLine(run.out.substr(begin, end - begin));
    EXPECT_TRUE(line.ok()) << run.out;
    return std::get<RecoverResult>(*line);
  }

  test::TempDir dir_;
};

TEST_F(RecoverCrashTest, P9WhereverItIsKilledTheNextOneTellsAllAndEndsIt) {
  fs::copy(master(), copy());
  const RecoverResult whole = ResultOf(Recover({}));
  ASSERT_GT(whole.lost_batches, 4U);
  ASSERT_THAT(whole.gone, Contains(JobId{kEndId - 1}));
  const std::string account = copy() + "/RECOVERY";
  EXPECT_FALSE(fs::exists(account));
  for (const std::string place :
       {"recovery/copied:1",     "recovery/copied:2",       "file/before_rename:1",
        "recovery/begun:1",      "recovery/cut:1",          "recovery/cut:2",
        "open/logs_recovered:1", "rocksdb/table_written:1", "rocksdb/table_written:3",
        "open/database_open:1",  "floor/before_sync:1",     "open/checked:1",
        "store/written:1",       "recover/marks_raised:1",  "recover/mended:1",
        "close/before_flush:1",  "close/flushed:1",         "close/before_floor:1",
        "close/after_floor:1",   "recover/told:1"}) {
    SCOPED_TRACE(place);
    fs::remove_all(copy());
    fs::copy(master(), copy());
    ASSERT_EQ(Recover({{"DELAYD_CRASH_AT", place}}).signal, SIGKILL);
    const bool begun = fs::exists(account);
    EXPECT_EQ(begun, !place.starts_with("recovery/copied") && !place.starts_with("file/"));
    const Status refused = OpenRocksJobStore({.path = copy()}).status();
    EXPECT_EQ(refused.reason(), "damaged_store");
    EXPECT_EQ(refused.message().find("cut short") != std::string::npos, begun);
    const RecoverResult again = ResultOf(Recover({}));
    EXPECT_TRUE(again.damaged);
    EXPECT_EQ(again.lost_batches, whole.lost_batches);
    EXPECT_EQ(again.gone, whole.gone);
    EXPECT_EQ(again.older, whole.older);
    EXPECT_EQ(again.revived, whole.revived);
    EXPECT_FALSE(fs::exists(account));
    const auto store = OpenRocksJobStore({.path = copy()});
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_TRUE(VerifyStore(**store).value().ok());
  }
}

}  // namespace
}  // namespace delayd::storage
