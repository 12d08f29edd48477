// recover --accept-loss on a store whose tables were flushed at different times: what one table has
// lost stands in another.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "protocol/store_json.h"
#include "storage/rocks_job_store.h"
#include "tests/support/daemon.h"
#include "tests/support/plain_tables.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/sample_store.h"

namespace delayd::test {
namespace {

namespace fs = std::filesystem;
using storage::Batch;
using storage::Table;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kDamagedId = 21;
constexpr uint64_t kLostId = 5'000'000;
constexpr uint64_t kLostIdMark = 6'000'000;
constexpr QueueId kNewQueue{7};
constexpr uint64_t kNewQueuesId = 30;

// RocksDB as it is, so that one table can be flushed and the others not.
class BareStore {
 public:
  explicit BareStore(const std::string& directory) {
    rocksdb::DBOptions options;
    options.avoid_flush_during_recovery = true;
    options.track_and_verify_wals_in_manifest = true;
    rocksdb::DB* db = nullptr;
    const rocksdb::Status opened =
        rocksdb::DB::Open(options, directory, test::PlainTables(), &families_, &db);
    EXPECT_TRUE(opened.ok()) << opened.ToString();
    db_.reset(db);
  }

  BareStore(const BareStore&) = delete;
  BareStore& operator=(const BareStore&) = delete;

  // Flushes nothing more.
  ~BareStore() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      EXPECT_TRUE(db_->DestroyColumnFamilyHandle(family).ok());
    }
  }

  void Commit(const Batch& batch) {
    rocksdb::WriteBatch rows;
    for (size_t i = 0; i < batch.size(); ++i) {
      const Batch::Op op = batch.op(i);
      rocksdb::ColumnFamilyHandle* family = families_[static_cast<size_t>(op.table)];
      EXPECT_TRUE(
          (op.is_delete ? rows.Delete(family, op.key) : rows.Put(family, op.key, op.value)).ok());
    }
    EXPECT_TRUE(db_->Write({}, &rows).ok());
  }

  void Flush(Table table) {
    EXPECT_TRUE(db_->Flush({}, families_[static_cast<size_t>(table)]).ok());
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

Batch Enqueue(uint64_t id, uint32_t pending) {
  Batch batch;
  storage::PutTimer(&batch, storage::Record(id, storage::kOrders));
  storage::PutCounts(&batch, storage::kOrders, {.pending = pending, .dead = 1});
  return batch;
}

// The first byte of `text`, in each file of that ending.
void Spoil(const std::string& data_dir, const char* ending, const std::string& text) {
  for (const auto& file : fs::directory_iterator(data_dir)) {
    std::string content = file.path().extension() == ending ? ReadFile(file.path()) : "";
    if (const size_t at = content.find(text); at != std::string::npos) {
      content[at] = 'P';
      WriteFile(file.path(), content);
    }
  }
}

class UnevenLossTest : public ::testing::TestWithParam<Table> {
 protected:
  // Job 10, which was acked, and everything below it is done with.
  static Batch Ack() {
    Batch batch;
    batch.Delete(Table::kTimers, storage::TimerKey(storage::At(10), JobId{10}));
    batch.Delete(Table::kIndex, storage::IndexKey(JobId{10}));
    batch.Delete(Table::kByQueue,
                 storage::ByQueueKey(storage::kOrders, storage::At(10), JobId{10}));
    storage::PutCounts(&batch, storage::kOrders, {.pending = 4, .dead = 1});
    storage::PutNumber(&batch, storage::kLowWaterMarkKey, storage::kDue + 11);
    return batch;
  }

  // The first job of a queue that was not there before.
  static Batch EnqueueInNewQueue() {
    Batch batch;
    batch.Put(Table::kQueues, "new", storage::EncodeQueueRecord("new", {.id = kNewQueue}));
    storage::PutTimer(&batch, storage::Record(kNewQueuesId, kNewQueue));
    storage::PutCounts(&batch, kNewQueue, {.pending = 1});
    return batch;
  }

  // Jobs 20, 21 and one of the next block of ids, an ack, a new queue; then all but one table are
  // lost from job 21 on.
  void MakeAndDamage(Table flushed) {
    {
      auto store = storage::OpenRocksJobStore({.path = daemon_.data_dir()});
      ASSERT_TRUE(store.ok()) << store.status().message();
      ASSERT_TRUE((*store)->Commit(storage::WholeStore()).ok());
      ASSERT_TRUE((*store)->Close().ok());
    }
    {
      BareStore store(daemon_.data_dir());
      store.Commit(Enqueue(20, 3));
      store.Commit(Enqueue(kDamagedId, 4));
      Batch last = Enqueue(kLostId, 5);
      storage::PutNumber(&last, storage::kIdHighWaterMarkKey, kLostIdMark);
      store.Commit(last);
      store.Commit(Ack());
      store.Commit(EnqueueInNewQueue());
      store.Flush(flushed);
    }
    Spoil(daemon_.data_dir(), ".log", storage::Record(kDamagedId, storage::kOrders).payload);
  }

  Daemon daemon_;
};

TEST_P(UnevenLossTest, P9ALossIsMendedWhereOneTableKnowsWhatTheOthersHaveLost) {
  MakeAndDamage(GetParam());
  ProcessResult result =
      daemon_.Ctl({"recover", "--data-dir", daemon_.data_dir(), "--accept-loss", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto loss = protocol::ParseRecoverResult(result.out);
  ASSERT_TRUE(loss.ok()) << result.out;
  EXPECT_GE(loss->lost_batches, 2U);
  EXPECT_FALSE(loss->lists_complete);
  EXPECT_THAT(loss->notes, Contains(HasSubstr("tables disagreed after the loss")));

  result = daemon_.Ctl({"verify", "--data-dir", daemon_.data_dir(), "-o", "json"});
  const auto verified = protocol::ParseVerifyResult(result.out);
  ASSERT_TRUE(verified.ok()) << result.out;
  for (const protocol::StoreFinding& finding : verified->findings) {
    EXPECT_FALSE(finding.repairable) << finding.what;
    EXPECT_THAT(loss->notes, Contains("still wrong: " + finding.what));
  }
  // Where rows alone lead to a record that is not there, whether it ended or was lost nobody knows.
  if (GetParam() == Table::kMeta) {
    EXPECT_EQ(verified->disagreements, 0U) << result.out;
  }
  ASSERT_TRUE(daemon_.Start());
  const std::string id = daemon_.CtlOk({"enqueue", "--in", "1h", "x"});
  EXPECT_GE(std::stoull(id), kLostIdMark) << "ids below may have been given out";
}

// Killed when the logs are cut, and before the tables are mended.
TEST_P(UnevenLossTest, P9ARecoveryThatWasKilledIsDoneBeforeTheNextStart) {
  MakeAndDamage(GetParam());
  {
    const auto store = storage::OpenRocksJobStore(
        {.path = daemon_.data_dir(), .must_exist = true, .accept_loss = true});
    ASSERT_TRUE(store.ok()) << store.status().message();
  }
  ProcessResult result = daemon_.StartExpectingFailure();
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_THAT(result.err, HasSubstr("run delayctl recover --accept-loss again"));
  EXPECT_EQ(daemon_.Ctl({"verify", "--data-dir", daemon_.data_dir(), "--repair"}).exit_code, 1);
  EXPECT_EQ(daemon_.Ctl({"recover", "--data-dir", daemon_.data_dir()}).exit_code, 1);
  const auto loss = protocol::ParseRecoverResult(
      daemon_.CtlOk({"recover", "--data-dir", daemon_.data_dir(), "--accept-loss", "-o", "json"}));
  ASSERT_TRUE(loss.ok());
  EXPECT_TRUE(loss->damaged);
  EXPECT_GE(loss->lost_batches, 2U);
  // An index row alone is no job.
  EXPECT_THAT(GetParam() == Table::kTimers ? loss->older : loss->gone, Contains(JobId{kLostId}));
  ASSERT_TRUE(daemon_.Start());
  EXPECT_GE(std::stoull(daemon_.CtlOk({"enqueue", "--in", "1h", "x"})), kLostIdMark);
}

// Only meta knows nothing of it: the counts of a queue are rebuilt without jobs.
TEST_P(UnevenLossTest, P9AQueueWhoseNameIsLostHasAnotherAndItsNumberIsNobodyElses) {
  MakeAndDamage(GetParam());
  const std::string told =
      daemon_.CtlOk({"recover", "--data-dir", daemon_.data_dir(), "--accept-loss"});
  ASSERT_TRUE(daemon_.Start());
  const std::string queues = daemon_.CtlOk({"queues"});
  if (GetParam() == Table::kMeta) {
    EXPECT_THAT(queues, Not(HasSubstr("recovered-")));
    return;
  }
  EXPECT_THAT(told, HasSubstr("the name of queue number 7 is lost"));
  EXPECT_THAT(queues, HasSubstr("recovered-7"));
  daemon_.CtlOk({"enqueue", "--queue", "next", "--in", "1h", "x"});
  const std::string listed = daemon_.CtlOk({"list", "--queue", "recovered-7", "--all", "-q"});
  EXPECT_EQ(listed, GetParam() == Table::kTimers ? std::to_string(kNewQueuesId) : "");
  // A job that only the index knows of is refused, and the daemon goes on.
  const ProcessResult cancelled = daemon_.Ctl({"cancel", std::to_string(kNewQueuesId)});
  EXPECT_EQ(cancelled.exit_code == 0, GetParam() == Table::kTimers) << cancelled.err;
  EXPECT_THAT(daemon_.CtlOk({"queues"}), HasSubstr("next"));
}

TEST_P(UnevenLossTest, P9ALossIsToldThoughTheReaderOfStdoutHasGone) {
  MakeAndDamage(GetParam());
  const TempDir own;
  const std::string gone = own.Sub("gone");
  const ProcessResult result =
      RunProcess({.argv = {"/bin/sh",
                           "-c",
                           "mkfifo \"$1\"; { read -r _ < \"$1\"; exec \"$2\" recover --accept-loss "
                           "--data-dir \"$3\"; } | { exec 0<&-; echo > \"$1\"; }",
                           "sh",
                           gone,
                           DelayctlPath(),
                           daemon_.data_dir()}});
  EXPECT_THAT(result.err, HasSubstr("cannot write to stdout"));
  EXPECT_THAT(result.err, HasSubstr("the store opens again"));
}

void MakeWholeStore(const std::string& data_dir) {
  auto store = storage::OpenRocksJobStore({.path = data_dir});
  ASSERT_TRUE(store.ok()) << store.status().message();
  ASSERT_TRUE((*store)->Commit(storage::WholeStore()).ok());
  ASSERT_TRUE((*store)->Close().ok());
}

// The MANIFEST says how long a log is that others follow; job 11 was moved in the newer one.
TEST(RecoverOlderLogTest, P9WhereAnOlderLogWasCutTheLossIsShownAsItWillBe) {
  Daemon daemon;
  const std::string data_dir = daemon.data_dir();
  ASSERT_NO_FATAL_FAILURE(MakeWholeStore(data_dir));
  {
    BareStore store(data_dir);
    store.Commit(Enqueue(20, 3));
    store.Flush(Table::kTimers);
    store.Commit(Enqueue(11, 3));
    store.Commit(Enqueue(kDamagedId, 4));
  }
  const std::string payload = storage::Record(20, storage::kOrders).payload;
  for (const auto& file : fs::directory_iterator(data_dir)) {
    const std::string log = file.path().extension() == ".log" ? ReadFile(file.path()) : "";
    if (const size_t at = log.find(payload); at != std::string::npos) {
      fs::resize_file(file.path(), at);
    }
  }
  const ProcessResult shown = daemon.Ctl({"recover", "--data-dir", data_dir, "-o", "json"});
  EXPECT_EQ(shown.exit_code, 1) << shown.err;
  const auto would_be = protocol::ParseRecoverResult(shown.out);
  const auto was = protocol::ParseRecoverResult(
      daemon.CtlOk({"recover", "--data-dir", data_dir, "--accept-loss", "-o", "json"}));
  ASSERT_TRUE(would_be.ok() && was.ok());
  EXPECT_EQ(would_be->lost_batches, 2U);
  EXPECT_EQ(was->gone, std::vector<JobId>{JobId{kDamagedId}});
  EXPECT_EQ(was->older, std::vector<JobId>{JobId{11}});
  EXPECT_EQ(would_be->gone, was->gone);
  EXPECT_EQ(would_be->older, was->older);
}

// The tables were closed in order; of what came behind, a batch is damaged, and so is the file of
// jobs that are due.
TEST(RecoverDamagedTableTest, P9WhereNoDaemonWouldStartBehindTheLossNothingIsGivenUp) {
  Daemon daemon;
  const std::string data_dir = daemon.data_dir();
  ASSERT_NO_FATAL_FAILURE(MakeWholeStore(data_dir));
  {
    BareStore store(data_dir);
    store.Commit(Enqueue(20, 3));
    store.Commit(Enqueue(kDamagedId, 4));
    store.Commit(Enqueue(22, 5));
  }
  Spoil(data_dir, ".log", storage::Record(kDamagedId, storage::kOrders).payload);
  const ProcessResult offered = daemon.Ctl({"recover", "--data-dir", data_dir});
  EXPECT_THAT(offered.out, HasSubstr("--accept-loss"));
  Spoil(data_dir, ".sst", storage::Record(10, storage::kOrders).payload);
  const ProcessResult shown = daemon.Ctl({"recover", "--data-dir", data_dir});
  EXPECT_EQ(shown.exit_code, 1) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("the daemon would not start behind the loss either: timers: "));
  EXPECT_THAT(shown.out, Not(HasSubstr("--accept-loss")));
  const ProcessResult refused = daemon.Ctl({"recover", "--data-dir", data_dir, "--accept-loss"});
  EXPECT_THAT(refused.err, HasSubstr("nothing was changed: the daemon would not start"));
  EXPECT_FALSE(fs::exists(data_dir + "/RECOVERY"));
  EXPECT_FALSE(fs::exists(data_dir + "/damaged")) << "what is cut is copied to";
}

// Jobs due in an hour, in several blocks, of which the last is damaged.
TEST(RecoverDamagedTableTest, P9ALookReadsAsFarAsTheConfiguredDaemonWould) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  for (int job = 1; job <= 40; ++job) {
    const std::string payload = "job " + std::to_string(job) + std::string(1000, 'x');
    daemon.CtlOk({"enqueue", "--in", "1h", payload});
  }
  EXPECT_EQ(daemon.Stop().exit_code, 0);
  Spoil(daemon.data_dir(), ".sst", "job 40");
  for (const auto& [horizon, opens] : {std::pair("10m", true), std::pair("2h", false)}) {
    ProcessOptions options =
        daemon.CtlOptions({"recover", "--data-dir", daemon.data_dir(), "-o", "json"});
    options.env["DELAYD_MEMORY_HORIZON"] = horizon;
    const auto result = protocol::ParseRecoverResult(RunProcess(options).out);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->unread);
    EXPECT_EQ(result->opens, opens) << horizon;
  }
}

// A large store has more tables than a shell's soft limit on open files allows.
TEST(OfflineFilesTest, AsManyFilesAreOpenAsTheSystemPermits) {
  Daemon daemon;
  ASSERT_NO_FATAL_FAILURE(MakeWholeStore(daemon.data_dir()));
  for (const std::string mode : {"--verify", "--verify --repair", "--recover"}) {
    const ProcessResult result =
        RunProcess({.argv = {"/bin/sh",
                             "-c",
                             "ulimit -S -n 8; exec \"$1\" " + mode + " --data-dir \"$2\"",
                             "sh",
                             DelaydPath(),
                             daemon.data_dir()}});
    EXPECT_EQ(result.exit_code, 0) << mode << result.out << result.err;
  }
}

// A stopped daemon's one job, in the queue "mails".
std::string LeaveAMail(Daemon* daemon) {
  EXPECT_TRUE(daemon->Start());
  std::string id = daemon->CtlOk({"enqueue", "--queue", "mails", "--in", "1h", "x"});
  EXPECT_EQ(daemon->Stop().exit_code, 0);
  return id;
}

// No table tells it again; the start sends whoever reads its log here.
TEST(LostQueueTest, P9WhoHasLostTheNameOfAQueueIsToldHowToGetAnother) {
  Daemon daemon;
  const std::string id = LeaveAMail(&daemon);
  {
    BareStore store(daemon.data_dir());
    Batch batch;
    batch.Delete(Table::kQueues, "mails");
    store.Commit(batch);
  }
  const std::vector<std::string> recover = {
      "recover", "--data-dir", daemon.data_dir(), "--accept-loss"};
  for (const bool repair : {false, true}) {
    std::vector<std::string> verify = {"verify", "--data-dir", daemon.data_dir()};
    verify.insert(verify.end(), repair ? 1 : 0, "--repair");
    const ProcessResult result = daemon.Ctl(verify);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.out, HasSubstr("job " + id + ": queue number 1 is not known"));
    const auto names_cure = [](const std::string& directory) {
      return HasSubstr("delayctl recover --data-dir " + directory +
                       " --accept-loss, which names lost queues anew");
    };
    EXPECT_THAT(result.out,
                AnyOf(names_cure(daemon.data_dir()), names_cure("'" + daemon.data_dir() + "'")));
  }
  EXPECT_THAT(daemon.CtlOk(recover), HasSubstr("recovered-1"));
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.CtlOk({"list", "--queue", "recovered-1", "--all", "-q"}), id);
}

// The log of the start sends whoever reads it to verify, and verify here.
TEST(DamagedRowTest, P9ADaemonStartsAgainWhereRowsOfMarksAndOfAQueueWereDamaged) {
  Daemon daemon;
  const std::string id = LeaveAMail(&daemon);
  {
    BareStore store(daemon.data_dir());
    Batch batch;
    batch.Put(Table::kQueues, "mails", "no record");
    batch.Put(Table::kMeta, storage::kIdHighWaterMarkKey, "no record");
    batch.Put(Table::kMeta, storage::kClockKey, "no record");
    store.Commit(batch);
  }
  const ProcessResult refused = daemon.StartExpectingFailure();
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.err, HasSubstr("cannot "));
  const ProcessResult verify = daemon.Ctl({"verify", "--data-dir", daemon.data_dir(), "--repair"});
  EXPECT_THAT(verify.out, AllOf(HasSubstr("3 disagreements"), HasSubstr("--accept-loss")));
  daemon.CtlOk({"recover", "--data-dir", daemon.data_dir(), "--accept-loss"});
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.CtlOk({"list", "--queue", "mails", "-q"}), id);
  EXPECT_GT(std::stoull(daemon.CtlOk({"enqueue", "--in", "1h", "y"})), std::stoull(id));
  EXPECT_THAT(daemon.CtlOk({"verify"}), HasSubstr("whole"));
}

INSTANTIATE_TEST_SUITE_P(EachFlushedAlone,
                         UnevenLossTest,
                         ::testing::Values(Table::kTimers, Table::kMeta, Table::kIndex),
                         [](const auto& table) {
                           return std::string(storage::TableName(table.param));
                         });

}  // namespace
}  // namespace delayd::test
