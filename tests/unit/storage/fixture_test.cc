// A store that a released schema wrote is opened for ever after.
//
// tests/data/store_schema_1 was written once, by DELAYD_WRITE_FIXTURE=<new directory> with this
// test, without RocksDB's LOG and OPTIONS files. It is never written again: a change that cannot
// read it needs a new schema and a second directory.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "sample_store.h"
#include "storage/rocks_job_store.h"
#include "storage/verify.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;

void WriteFixture(const std::string& path) {
  auto store = OpenRocksJobStore({.path = path});
  ASSERT_TRUE(store.ok()) << store.status().message();
  Batch batch = WholeStore();
  PutNumber(&batch, kBatchNumberKey, 1);
  ASSERT_TRUE((*store)->Commit(batch).ok());
  ASSERT_TRUE((*store)->Close().ok());
}

// Counts did not tell of finished jobs then.
std::string AsItWasWritten(const Batch::Op& op) {
  if (op.table != Table::kMeta || !op.key.starts_with(kQueueCountsPrefix)) {
    return std::string(op.value);
  }
  QueueCounts counts = *DecodeQueueCounts(op.key, op.value);
  counts.done.reset();
  return EncodeQueueCounts(op.key, counts);
}

TEST(FixtureTest, StoreOfSchema1OpensAndIsWhole) {
  const char* write_to = std::getenv("DELAYD_WRITE_FIXTURE");  // NOLINT(concurrency-mt-unsafe)
  if (write_to != nullptr) {
    WriteFixture(write_to);
  }
  const test::TempDir dir;
  fs::copy(DELAYD_TEST_DATA "/store_schema_1", dir.Sub("data"), fs::copy_options::recursive);
  const auto store = OpenRocksJobStore({.path = dir.Sub("data")});
  ASSERT_TRUE(store.ok()) << store.status().message();
  const auto report = VerifyStore(**store);
  ASSERT_TRUE(report.ok());
  for (const Disagreement& disagreement : report->disagreements) {
    ADD_FAILURE() << disagreement.what;
  }
  EXPECT_EQ(report->pending, 3U);
  EXPECT_EQ(report->dead, 1U);
  // Every row, byte for byte.
  const Batch batch = WholeStore();
  for (size_t i = 0; i < batch.size(); ++i) {
    const Batch::Op op = batch.op(i);
    std::string value;
    ASSERT_TRUE((*store)->Get(op.table, op.key, &value).ok()) << TableName(op.table);
    EXPECT_EQ(value, AsItWasWritten(op)) << TableName(op.table);
  }
}

}  // namespace
}  // namespace delayd::storage
