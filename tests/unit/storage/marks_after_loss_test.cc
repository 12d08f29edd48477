// What a loss may have left: rows of ids and queues that the marks and the list of queues do not
// know, and tables of which a part cannot be read.
#include "storage/marks_after_loss.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "storage/memory_job_store.h"
#include "storage/verify.h"
#include "tests/unit/storage/sample_store.h"

namespace delayd::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr QueueId kNew{5};

class MarksAfterLossTest : public ::testing::Test {
 protected:
  MarksAfterLossTest() { EXPECT_TRUE(store_.Commit(WholeStore()).ok()); }

  void Plant(const Batch& batch) { ASSERT_TRUE(store_.Commit(batch).ok()); }

  std::vector<std::string> Raise(const RecoveryReport& report = {}) {
    std::vector<std::string> notes;
    EXPECT_TRUE(RaiseMarksAfterLoss(report, &store_, &notes).ok());
    return notes;
  }

  uint64_t Number(std::string_view key) {
    std::string value;
    EXPECT_TRUE(store_.Get(Table::kMeta, key, &value).ok());
    return DecodeNumber(key, value).value();
  }

  // Nothing when there is no such queue.
  QueueId NumberOf(std::string_view name) {
    std::string value;
    return store_.Get(Table::kQueues, name, &value).ok() ? DecodeQueueRecord(name, value)->id
                                                         : QueueId{};
  }

  MemoryJobStore store_;
};

// One table cannot be read to its end.
class PartOfTable final : public JobStore {
 public:
  PartOfTable(JobStore* store, Table damaged) : store_(store), damaged_(damaged) {}

  Status Get(Table table, std::string_view key, std::string* value) const override {
    return store_->Get(table, key, value);
  }

  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return table == damaged_ ? DataLoss("000012.sst: block 7 is damaged")
                             : store_->Scan(table, from, to, visit);
  }

  Status Commit(const Batch& batch, const OnDurable& on_durable) override {
    return store_->Commit(batch, on_durable);
  }

  Status Close() override { return OkStatus(); }

 private:
  JobStore* store_;
  Table damaged_;
};

TEST_F(MarksAfterLossTest, AWholeStoreGetsNoQueueAndNoNote) {
  EXPECT_THAT(Raise(), IsEmpty());
  EXPECT_EQ(Number(kIdHighWaterMarkKey), 1000 + limits::kJobIdsASecond);
  EXPECT_TRUE(VerifyStore(store_)->ok());
}

TEST_F(MarksAfterLossTest, P9IdsGoOnAboveAllThatAnyTableOrLostBatchKnows) {
  Batch batch;
  batch.Put(Table::kByQueue, ByQueueKey(kOrders, At(2), JobId{2'000'000}), {});
  Plant(batch);
  Raise();
  EXPECT_EQ(Number(kIdHighWaterMarkKey), 2'000'001 + limits::kJobIdsASecond);
  Raise({.lost_ids_end = 9'000'000});
  EXPECT_EQ(Number(kIdHighWaterMarkKey), 9'000'000 + limits::kJobIdsASecond);
}

// A worker may still hold a token of a start that was lost: it must be none of a later one.
TEST_F(MarksAfterLossTest, P6NoLaterStartHasTheNumberOfALostOne) {
  Batch batch;
  batch.Put(Table::kMeta, kEpochKey, EncodeNumber(kEpochKey, 7));
  Plant(batch);
  Raise();
  EXPECT_EQ(Number(kEpochKey), 7 + 1000);
}

TEST_F(MarksAfterLossTest, P9WhatLooksLikeALostBatchDoesNotUseUpAllIds) {
  Raise({.lost_ids_end = limits::kJobIdMax + 1});
  const uint64_t once = Number(kIdHighWaterMarkKey);
  EXPECT_LT(once, limits::kJobIdMax / 1'000'000);
  Raise({.lost_ids_end = UINT64_MAX});
  EXPECT_GT(Number(kIdHighWaterMarkKey), once);
  EXPECT_LT(Number(kIdHighWaterMarkKey), limits::kJobIdMax / 1'000'000);
}

// Each of them alone may be what is left of a new queue.
TEST_F(MarksAfterLossTest, P9AQueueWhoseNameIsLostGetsOneWhateverIsLeftOfIt) {
  const std::string timer = TimerKey(At(30), JobId{30});
  const std::string index = IndexKey(JobId{30});
  const std::string done = DoneKey(At(30), JobId{30});
  JobRecord record = Record(30, kNew);
  const std::vector<std::tuple<Table, std::string, std::string>> rows = {
      {Table::kTimers, timer, EncodeJobRecord(Table::kTimers, timer, record)},
      {Table::kIndex, index, EncodeIndexRecord(index, {.queue = kNew, .at = At(30)})},
      {Table::kDone, done, EncodeDoneRecord(done, {.queue = kNew, .kept_until = At(900)})},
      {Table::kDead, DeadKey(kNew, At(30), JobId{30}), ""},
      {Table::kByQueue, ByQueueKey(kNew, At(30), JobId{30}), ""},
      {Table::kKeys, ClientKey(kNew, "k"), ""}};
  for (const auto& [table, key, value] : rows) {
    Batch batch;
    batch.Put(table, key, value);
    Plant(batch);
    EXPECT_THAT(Raise(), ElementsAre(HasSubstr("queue number 5 is lost")))
        << static_cast<int>(table);
    EXPECT_EQ(NumberOf("recovered-5"), kNew) << static_cast<int>(table);
    EXPECT_THAT(Raise(), IsEmpty()) << "once more it does no harm";
    batch = Batch();
    batch.Delete(table, key);
    batch.Delete(Table::kQueues, "recovered-5");
    Plant(batch);
  }
}

TEST_F(MarksAfterLossTest, AQueueGetsNoNameThatAnotherHas) {
  Batch batch;
  for (const auto& [name, id] : {std::pair("recovered-5", 7U), std::pair("recovered-5-2", 8U)}) {
    batch.Put(Table::kQueues, name, EncodeQueueRecord(name, {.id = QueueId{id}}));
  }
  batch.Put(Table::kByQueue, ByQueueKey(kNew, At(30), JobId{30}), {});
  Plant(batch);
  EXPECT_THAT(Raise(), ElementsAre(HasSubstr("is in recovered-5-3")));
  EXPECT_EQ(NumberOf("recovered-5"), QueueId{7});
  EXPECT_EQ(NumberOf("recovered-5-3"), kNew);
}

TEST_F(MarksAfterLossTest, ANumberThatNoQueueCanHaveOrADamagedRowMayHaveIsLeft) {
  Batch batch;
  batch.Put(Table::kByQueue, ByQueueKey(QueueId{0}, At(30), JobId{30}), {});
  batch.Put(Table::kByQueue, ByQueueKey(QueueId{limits::kQueueIdMax + 1}, At(30), JobId{30}), {});
  Plant(batch);
  EXPECT_THAT(Raise(), ::testing::Each(HasSubstr("no queue can have it")));
  batch = Batch();
  for (const char* name : {"orders", "mails"}) {
    batch.Put(Table::kQueues, name, "no record");
  }
  Plant(batch);
  EXPECT_THAT(Raise(),
              Contains(HasSubstr("queue number 1 is not known, and was left so: it may be that")));
  EXPECT_EQ(NumberOf("recovered-1"), QueueId{});
}

// No daemon starts on it.
TEST_F(MarksAfterLossTest, P9TheOneDamagedQueueHasTheOneNumberWithoutAName) {
  Batch batch;
  batch.Put(Table::kQueues, "orders", "no record");
  Plant(batch);
  EXPECT_THAT(Raise(), ElementsAre(HasSubstr("queue orders was damaged; it was made anew")));
  EXPECT_EQ(NumberOf("orders"), kOrders);
  EXPECT_TRUE(VerifyStore(store_)->ok());
}

TEST_F(MarksAfterLossTest, P9DamagedQueuesWithoutJobsAreRemoved) {
  Batch batch;
  for (const char* name : {"empty", "idle"}) {
    batch.Put(Table::kQueues, name, "no record");
  }
  Plant(batch);
  EXPECT_THAT(Raise(),
              ElementsAre(HasSubstr("queue empty, which has no jobs"), HasSubstr("queue idle")));
  EXPECT_TRUE(VerifyStore(store_)->ok());
  Plant(batch);
  PartOfTable part(&store_, Table::kTimers);
  std::vector<std::string> notes;
  ASSERT_TRUE(RaiseMarksAfterLoss({}, &part, &notes).ok());
  EXPECT_FALSE(VerifyStore(store_)->ok()) << "its jobs may be among those that cannot be read";
}

// No start reads a damaged mark, and no verify can tell what was in it.
TEST_F(MarksAfterLossTest, P9AMarkThatCannotBeReadKeepsNoDaemonFromStarting) {
  for (const std::string_view key : {kIdHighWaterMarkKey,
                                     kEpochKey,
                                     kLowWaterMarkKey,
                                     kDoneLowWaterMarkKey,
                                     kClockKey,
                                     kWallOffsetMaxKey,
                                     kWallOffsetMinKey}) {
    Batch batch;
    batch.Put(Table::kMeta, key, "no record");
    Plant(batch);
    EXPECT_THAT(Raise(), ElementsAre(HasSubstr("meta " + std::string(key)))) << key;
    EXPECT_TRUE(VerifyStore(store_)->ok()) << key;
    EXPECT_THAT(Raise(), IsEmpty()) << key;
  }
  // Job 13 is the last of which a row is left.
  EXPECT_GT(Number(kIdHighWaterMarkKey), 14 + 365 * 86'400 * limits::kJobIdsASecond);
  EXPECT_EQ(Number(kLowWaterMarkKey), static_cast<uint64_t>(kDue) + 10);
}

TEST_F(MarksAfterLossTest, P9ADamagedBlockKeepsNobodyFromTheRest) {
  for (const Table table : {Table::kTimers,
                            Table::kIndex,
                            Table::kByQueue,
                            Table::kKeys,
                            Table::kDead,
                            Table::kDone,
                            Table::kQueues}) {
    PartOfTable part(&store_, table);
    const uint64_t before = Number(kIdHighWaterMarkKey);
    std::vector<std::string> notes;
    const Status raised = RaiseMarksAfterLoss({}, &part, &notes);
    ASSERT_TRUE(raised.ok()) << static_cast<int>(table) << raised.message();
    EXPECT_EQ(Number(kIdHighWaterMarkKey), before + limits::kJobIdsASecond);
    EXPECT_THAT(notes, Not(IsEmpty())) << static_cast<int>(table);
    EXPECT_EQ(NumberOf("recovered-1"), QueueId{}) << "its name is in what cannot be read";
  }
}

}  // namespace
}  // namespace delayd::storage
