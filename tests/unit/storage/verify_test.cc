// Every kind of disagreement between two tables is planted, and has to be found and named.
#include "storage/verify.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "tests/unit/storage/verify_fixture.h"

namespace delayd::storage {
namespace {

using ::testing::HasSubstr;

const std::string kTimer10 = TimerKey(At(10), JobId{10});

TEST_F(VerifyTest, WholeStoreHasNothingToSay) {
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << ::testing::PrintToString(Texts(report));
  EXPECT_EQ(report.pending, 3U);
  EXPECT_EQ(report.dead, 1U);
  EXPECT_TRUE(report.repair.empty());
}

TEST_F(VerifyTest, P9DamagedRecordIsNamed) {
  Flip(Table::kTimers, kTimer10);
  const VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), ::testing::Contains(HasSubstr("job 10: record checksum")));
  // What leads to it says so too, and is not swept away.
  EXPECT_THAT(Texts(report), ::testing::Contains(HasSubstr("job 10: its index row leads to")));
}

TEST_F(VerifyTest, P9ADamagedMarkOfIdsIsNamedAndNotEachId) {
  Flip(Table::kMeta, std::string(kIdHighWaterMarkKey));
  ExpectOne("meta id_hwm: record checksum", false);
}

bool HasMetaFinding(const VerifyReport& report, bool repairable) {
  return std::ranges::any_of(report.disagreements, [&](const Disagreement& one) {
    return one.table == Table::kMeta && one.repairable == repairable;
  });
}

TEST_F(VerifyTest, P9DamagedRecordsAreCountedAsAStartCountsThem) {
  Flip(Table::kTimers, kTimer10);
  Flip(Table::kDead, DeadKey(kOrders, At(13), JobId{13}));
  const VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), ::testing::Not(::testing::Contains(HasSubstr("queue orders"))));
  EXPECT_EQ(report.pending, 3U);
  EXPECT_EQ(report.dead, 1U);
  EXPECT_TRUE(report.repair.empty());
}

TEST_F(VerifyTest, P9ADeadJobIsCountedByItsKeyWhateverIsLeftOfItsRecord) {
  Batch batch;
  batch.Put(Table::kDead, DeadKey(kOrders, At(13), JobId{13}), "\x09");
  Plant(batch);
  const VerifyReport report = Verify();
  EXPECT_FALSE(HasMetaFinding(report, false));
  EXPECT_FALSE(HasMetaFinding(report, true));
  EXPECT_EQ(report.dead, 1U);
}

TEST_F(VerifyTest, P9CountsAreNotRebuiltWithoutJobsThatNoQueueIsKnownOf) {
  Batch batch;
  batch.Put(Table::kTimers, kTimer10, "\x09");
  Plant(batch);
  const VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), ::testing::Contains(HasSubstr("besides those that cannot be read")));
  EXPECT_TRUE(HasMetaFinding(report, false));
  EXPECT_FALSE(HasMetaFinding(report, true));
  EXPECT_TRUE(report.repair.empty());
}

TEST_F(VerifyTest, P9CountsOfUsersAreNotRebuiltWithoutDamagedJobs) {
  Batch batch;
  PutNumber(&batch, UserJobsKey("uid:1000"), 1);
  Plant(batch);
  Flip(Table::kTimers, kTimer10);
  const VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), ::testing::Contains(HasSubstr("user uid:1000: 1 jobs are counted")));
  EXPECT_TRUE(report.repair.empty());
}

// A store with a damaged block in one table: no row of it can be read.
class UnreadTable final : public JobReader {
 public:
  UnreadTable(const JobReader& store, Table damaged) : store_(store), damaged_(damaged) {}

  Status Get(Table table, std::string_view key, std::string* value) const override {
    return table == damaged_ ? Damaged() : store_.Get(table, key, value);
  }

  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return table == damaged_ ? Damaged() : store_.Scan(table, from, to, visit);
  }

 private:
  static Status Damaged() { return DataLoss("000012.sst: block 7 is damaged"); }

  const JobReader& store_;
  Table damaged_;
};

// Else the repair would take away what is left of the rows in it.
TEST_F(VerifyTest, P9NothingIsRepairedByATableThatCannotBeRead) {
  Batch batch;
  const std::string done = DoneKey(At(1), JobId{8});
  batch.Put(Table::kDone, done, EncodeDoneRecord(done, {.queue = kOrders, .kept_until = At(900)}));
  PutIndex(&batch, 8, IndexRecord::Place::kDone, kOrders, At(1));
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 2});
  Plant(batch);
  for (const Table table : {Table::kTimers,
                            Table::kIndex,
                            Table::kByQueue,
                            Table::kKeys,
                            Table::kBig,
                            Table::kDead,
                            Table::kDone}) {
    const auto report = VerifyStore(UnreadTable(store_, table));
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->repair.empty())
        << static_cast<int>(table) << ::testing::PrintToString(Texts(*report));
    const std::vector<std::string> texts = Texts(*report);
    EXPECT_EQ(std::ranges::count(texts, "000012.sst: block 7 is damaged"), 1);
  }
}

// The index row may lead to the job as it is now: both would be handed out.
TEST_F(VerifyTest, P9AnIndexRowThatLeadsIntoATableThatCannotBeReadStays) {
  Batch batch;
  PutIndex(&batch, 10, IndexRecord::Place::kDead, kOrders, At(10));
  Plant(batch);
  const auto report = VerifyStore(UnreadTable(store_, Table::kDead));
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(Texts(*report), ::testing::Contains(HasSubstr(", which cannot be read")));
  EXPECT_TRUE(report->repair.empty());
}

// A damaged block is one finding, and not one more for each job.
TEST_F(VerifyTest, P9WhatATableThatCannotBeReadMayHoldIsNotCalledMissing) {
  JobRecord owned = Record(20, kOrders);
  owned.user = "uid:1000";
  Batch batch;
  PutTimer(&batch, owned);
  batch.Put(
      Table::kMeta, UserJobsKey(owned.user), EncodeNumber(UserJobsKey(owned.user), uint64_t{1}));
  PutCounts(&batch, kOrders, {.pending = 3, .dead = 1, .done = 1});
  Plant(batch);
  ASSERT_TRUE(Texts(Verify()).empty());
  for (const Table table : {Table::kMeta, Table::kQueues}) {
    const auto report = VerifyStore(UnreadTable(store_, table));
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(Texts(*report), std::vector<std::string>{"000012.sst: block 7 is damaged"});
    EXPECT_TRUE(report->repair.empty());
  }
}

TEST_F(VerifyTest, P9LostRecordIsNamedByWhatIsLeftOfIt) {
  Drop(Table::kTimers, kTimer10);
  const VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), ::testing::Contains(HasSubstr("job 10: its index row leads to")));
  EXPECT_THAT(Texts(report), ::testing::Contains(HasSubstr("job 10: its by_queue row leads to")));
  for (const Disagreement& disagreement : report.disagreements) {
    EXPECT_EQ(disagreement.repairable, disagreement.table == Table::kMeta)
        << "only the counts may follow: " << disagreement.what;
  }
}

TEST_F(VerifyTest, P9WhoEndsAJobWhoseRecordIsLostIsMadeToLookForIt) {
  const std::string key = IndexKey(JobId{10});
  const IndexRecord plain{
      .place = IndexRecord::Place::kTimers, .queue = kOrders, .at = At(10), .plain = true};
  Batch batch;
  batch.Put(Table::kIndex, key, EncodeIndexRecord(key, plain));
  Plant(batch);
  Drop(Table::kTimers, kTimer10);
  Plant(Verify().repair);
  std::string value;
  ASSERT_TRUE(store_.Get(Table::kIndex, key, &value).ok());
  const auto index = DecodeIndexRecord(key, value);
  ASSERT_TRUE(index.ok());
  EXPECT_FALSE(index->plain);
  const VerifyReport again = Verify();
  EXPECT_THAT(Texts(again), ::testing::Contains(HasSubstr("job 10: its index row leads to")));
  EXPECT_TRUE(again.repair.empty());
}

TEST_F(VerifyTest, MissingIndexRowIsRebuilt) {
  Drop(Table::kIndex, IndexKey(JobId{10}));
  ExpectOne("job 10: its index row is missing", true);
}

TEST_F(VerifyTest, IndexRowThatLeadsNowhereIsRebuilt) {
  Batch batch;
  PutIndex(&batch, 10, IndexRecord::Place::kTimers, kOrders, At(11));
  Plant(batch);
  const VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), ::testing::Contains(HasSubstr("job 10: its record is in timers")));
  Plant(report.repair);
  EXPECT_TRUE(Verify().ok());
}

// Or its key would stay for ever when it is cancelled.
TEST_F(VerifyTest, IndexRowThatHidesAKeyIsRebuilt) {
  const std::string key = IndexKey(JobId{11});
  Batch batch;
  batch.Put(
      Table::kIndex,
      key,
      EncodeIndexRecord(
          key,
          {.place = IndexRecord::Place::kTimers, .queue = kOrders, .at = At(11), .plain = true}));
  Plant(batch);
  ExpectOne("job 11: its index row says that it has no key", true);
}

TEST_F(VerifyTest, DamagedIndexRowIsRebuilt) {
  Flip(Table::kIndex, IndexKey(JobId{13}));
  ExpectOne("index of job 13", true);
}

TEST_F(VerifyTest, IndexRowWithoutAJobIsNamed) {
  Batch batch;
  PutIndex(&batch, 77, IndexRecord::Place::kTimers, kOrders, At(77));
  Plant(batch);
  ExpectOne("job 77: its index row leads to timers", false);
}

// What a loss leaves when one table was flushed and the other was not.
TEST_F(VerifyTest, P9OfAJobThatIsThereTwiceTheOneStaysToWhichItsIndexRowLeads) {
  const std::string timer = TimerKey(At(99), JobId{10});
  const std::string dead = DeadKey(kOrders, At(99), JobId{10});
  Batch batch;
  batch.Put(Table::kTimers, timer, EncodeJobRecord(Table::kTimers, timer, Record(10, kOrders)));
  batch.Put(Table::kDead, dead, EncodeJobRecord(Table::kDead, dead, Record(10, kOrders)));
  Plant(batch);
  EXPECT_THAT(Texts(Verify()), ::testing::Contains(HasSubstr("where there is another")));
  for (VerifyReport report = Verify(); !report.repair.empty(); report = Verify()) {
    Plant(report.repair);
  }
  EXPECT_TRUE(Verify().ok()) << "its place among the queue's jobs, and the counts, too";
  std::string value;
  EXPECT_EQ(store_.Get(Table::kTimers, timer, &value).code(), StatusCode::kNotFound);
  EXPECT_EQ(store_.Get(Table::kDead, dead, &value).code(), StatusCode::kNotFound);
  EXPECT_TRUE(store_.Get(Table::kTimers, TimerKey(At(10), JobId{10}), &value).ok());
}

TEST_F(VerifyTest, MissingByQueueRowIsRebuilt) {
  Drop(Table::kByQueue, ByQueueKey(kOrders, At(10), JobId{10}));
  ExpectOne("job 10: its by_queue row is missing", true);
}

TEST_F(VerifyTest, SuperfluousByQueueRowIsSweptAway) {
  Batch batch;
  batch.Put(Table::kByQueue, ByQueueKey(kOrders, At(5), JobId{10}), {});
  Plant(batch);
  ExpectOne("job 10: a by_queue row leads to", true);
}

TEST_F(VerifyTest, MissingBigPayloadIsNamed) {
  Drop(Table::kBig, IndexKey(JobId{12}));
  ExpectOne("job 12: its payload is missing", false);
}

TEST_F(VerifyTest, BigPayloadOfAnotherSizeIsNamed) {
  Batch batch;
  const std::string key = IndexKey(JobId{12});
  batch.Put(Table::kBig, key, EncodeBigPayload(key, "short"));
  Plant(batch);
  ExpectOne("job 12: its payload has 5 bytes and should have 5000", false);
}

TEST_F(VerifyTest, P9DamagedBigPayloadIsNamed) {
  Flip(Table::kBig, IndexKey(JobId{12}));
  EXPECT_THAT(Texts(Verify()),
              ::testing::Contains(HasSubstr("payload of job 12: record checksum")));
}

TEST_F(VerifyTest, BigPayloadWithoutAJobIsNamed) {
  Batch batch;
  const std::string key = IndexKey(JobId{10});
  batch.Put(Table::kBig, key, EncodeBigPayload(key, "nobody's"));
  Plant(batch);
  ExpectOne("payload of job 10: no such job needs it", false);
}

TEST_F(VerifyTest, MissingKeyRowIsRebuilt) {
  Drop(Table::kKeys, ClientKey(kOrders, "order:11"));
  ExpectOne("job 11: the row of its key order:11 in queue number 1 is missing", true);
}

TEST_F(VerifyTest, KeyOfALiveJobThatSaysFinishedIsRebuilt) {
  Batch batch;
  const std::string key = ClientKey(kOrders, "order:13");
  batch.Put(Table::kKeys,
            key,
            EncodeKeyRecord(key, {.id = JobId{13}, .expiry = At(500), .finished = At(0)}));
  const std::string done = DoneKey(At(0), JobId{13});
  batch.Put(Table::kDone, done, EncodeDoneRecord(done, {.queue = kOrders, .key = "order:13"}));
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 2});
  Plant(batch);
  ExpectOne("job 13: its key order:13 in queue number 1 says that it has finished", true);
}

TEST_F(VerifyTest, KeyOfAnotherJobIsNamed) {
  Batch batch;
  const std::string key = ClientKey(kOrders, "order:11");
  batch.Put(Table::kKeys, key, EncodeKeyRecord(key, {.id = JobId{10}}));
  Plant(batch);
  const auto texts = Texts(Verify());
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("job 11: its key order:11")));
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("it belongs to job 10")));
}

TEST_F(VerifyTest, P9DamagedKeyRowIsNamed) {
  Flip(Table::kKeys, ClientKey(kOrders, "order:9"));
  ExpectOne("key order:9 in queue number 1: record checksum", false);
}

TEST_F(VerifyTest, FinishedKeyThatNothingWouldForgetIsSweptAway) {
  Drop(Table::kDone, DoneKey(At(0), JobId{9}));
  Batch batch;
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 0});
  Plant(batch);
  ExpectOne("key order:9 of finished job 9", true);
}

TEST_F(VerifyTest, DoneRowBelowItsMarkIsSweptAway) {
  const std::string key = DoneKey(WallFromMillis(5), JobId{3});
  const std::string at_mark = DoneKey(WallFromMillis(kDue - 1000), JobId{4});
  Batch batch;
  batch.Put(Table::kDone, at_mark, EncodeDoneRecord(at_mark, {.queue = kOrders}));
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 2});
  batch.Put(Table::kDone, key, EncodeDoneRecord(key, {.queue = kOrders}));
  Plant(batch);
  ExpectOne("finished job 3: it lies below done_lwm", true);
}

TEST_F(VerifyTest, P9DamagedDoneRowIsNamed) {
  Flip(Table::kDone, DoneKey(At(0), JobId{9}));
  ExpectOne("finished job 9: record checksum", false);
}

TEST_F(VerifyTest, WrongCountsAreRebuilt) {
  Batch batch;
  PutCounts(&batch, kOrders, {.pending = 3, .dead = 1, .done = 1});
  Plant(batch);
  ExpectOne(
      "queue orders: it counts 3 pending, 1 dead and 1 finished jobs, and holds 2 pending, 1 dead "
      "and 1 finished jobs",
      true);
}

TEST_F(VerifyTest, WrongCountsOfFinishedJobsAreRebuilt) {
  Batch batch;
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 0});
  Plant(batch);
  ExpectOne("queue orders: it counts 2 pending, 1 dead and 0 finished jobs, and holds", true);
}

TEST_F(VerifyTest, FinishedJobsThatWereNotCountedAreNoDamage) {
  Batch batch;
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = std::nullopt});
  Plant(batch);
  EXPECT_TRUE(Texts(Verify()).empty());
}

TEST_F(VerifyTest, WrongCountsOfUsersAreRebuilt) {
  Batch batch;
  PutNumber(&batch, UserJobsKey("uid:1000"), 3);
  Plant(batch);
  ExpectOne("user uid:1000: 3 jobs are counted, and 0 are stored", true);
}

TEST_F(VerifyTest, MissingCountsAreRebuilt) {
  Drop(Table::kMeta, QueueCountsKey(kMails));
  ExpectOne("queue mails: it counts 0 pending", true);
}

// A start would refuse the store for it, and an empty queue has such a row too.
TEST_F(VerifyTest, P9DamagedCountsAreRebuilt) {
  constexpr QueueId kEmpty{3};
  Batch batch;
  batch.Put(Table::kQueues, "empty", EncodeQueueRecord("empty", {.id = kEmpty}));
  PutCounts(&batch, kEmpty, {});
  Plant(batch);
  Flip(Table::kMeta, QueueCountsKey(kEmpty));
  ExpectOne("counts of queue number 3: record checksum", true);
  Flip(Table::kMeta, QueueCountsKey(kOrders));
  ExpectOne("counts of queue number 1: record checksum", true);
}

// A start would keep the number from other queues.
TEST_F(VerifyTest, P9CountsOfAQueueOfWhichNothingElseIsLeftAreSweptAway) {
  const std::string key = QueueCountsKey(QueueId{3});
  std::string value;
  Batch batch;
  PutCounts(&batch, QueueId{3}, {.pending = 2});
  Plant(batch);
  ExpectOne("queue 3: it counts 2 pending", true);
  EXPECT_EQ(store_.Get(Table::kMeta, key, &value).code(), StatusCode::kNotFound);
  Plant(batch);
  Flip(Table::kMeta, key);
  ExpectOne("counts of queue number 3: record checksum", true);
  EXPECT_EQ(store_.Get(Table::kMeta, key, &value).code(), StatusCode::kNotFound);
}

TEST_F(VerifyTest, P9DamagedCountsOfUsersAreRebuilt) {
  Batch batch;
  PutNumber(&batch, UserJobsKey("uid:1000"), 3);
  Plant(batch);
  Flip(Table::kMeta, UserJobsKey("uid:1000"));
  ExpectOne("meta user/uid:1000: record checksum", true);
}

// It may be any.
TEST_F(VerifyTest, P9NoQueueIsCalledUnknownWhereARowOfOneIsDamaged) {
  Flip(Table::kQueues, "orders");
  ExpectOne("queue orders: record checksum", false);
}

TEST_F(VerifyTest, JobBelowTheLowWaterMarkIsNamed) {
  Batch batch;
  PutNumber(&batch, kLowWaterMarkKey, kDue + 11);
  Plant(batch);
  ExpectOne("job 10: it lies below the low-water mark", false);
}

TEST_F(VerifyTest, IdThatWouldBeGivenOutAgainIsNamed) {
  Batch batch;
  PutNumber(&batch, kIdHighWaterMarkKey, 13);
  Plant(batch);
  ExpectOne("job 13: its id lies above id_hwm", false);
}

TEST_F(VerifyTest, JobOfAnUnknownQueueIsNamed) {
  Drop(Table::kQueues, "mails");
  ExpectOne("job 12: queue number 2 is not known", false);
}

// Where the daemon cannot show one it sends its operator to verify.
TEST_F(VerifyTest, FinishedJobOfAnUnknownQueueIsNamed) {
  const std::string key = DoneKey(At(1), JobId{8});
  Batch batch;
  batch.Put(Table::kDone, key, EncodeDoneRecord(key, {.queue = QueueId{3}}));
  PutCounts(&batch, QueueId{3}, {.done = 1});
  Plant(batch);
  ExpectOne("finished job 8: queue number 3 is not known", false);
}

TEST_F(VerifyTest, IdOfAFinishedJobThatWouldBeGivenOutAgainIsNamed) {
  const std::string key = DoneKey(At(1), JobId{1000});
  Batch batch;
  batch.Put(Table::kDone, key, EncodeDoneRecord(key, {.queue = kOrders}));
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 2});
  Plant(batch);
  ExpectOne("finished job 1000: its id lies above id_hwm 1000", false);
}

TEST_F(VerifyTest, TwoQueuesWithOneNumberAreNamed) {
  Batch batch;
  batch.Put(Table::kQueues, "twin", EncodeQueueRecord("twin", {.id = kMails}));
  Plant(batch);
  ExpectOne("queue twin: it has the number of queue mails", false);
}

TEST_F(VerifyTest, P9DamagedMetaAndQueueRowsAreNamed) {
  Batch batch;
  batch.Put(Table::kMeta, kClockKey, EncodeClockRecord(kClockKey, {.wall = At(0)}));
  Plant(batch);
  EXPECT_TRUE(Verify().ok()) << "the clock is no number";
  for (const auto& [table, key] : {std::pair(Table::kMeta, std::string(kSchemaKey)),
                                   std::pair(Table::kMeta, QueueCountsKey(kMails)),
                                   std::pair(Table::kMeta, std::string(kClockKey)),
                                   std::pair(Table::kQueues, std::string("orders"))}) {
    Flip(table, key);
  }
  const auto texts = Texts(Verify());
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("meta schema: record checksum")));
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("counts of queue number 2")));
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("meta clock: record checksum")));
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("queue orders: record checksum")));
}

TEST_F(VerifyTest, KeyOfTheWrongLengthIsNamed) {
  Batch batch;
  batch.Put(Table::kTimers, "short", "value");
  batch.Put(Table::kByQueue, "short", {});
  batch.Put(Table::kBig, "short", "value");
  batch.Delete(Table::kBig, IndexKey(JobId{12}));  // so that the rows of kBig are looked at again
  Plant(batch);
  const auto texts = Texts(Verify());
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("timer key: 5 bytes")));
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("by_queue key: 5 bytes")));
  EXPECT_THAT(texts, ::testing::Contains(HasSubstr("job 12: its payload is missing")));
}

TEST_F(VerifyTest, ManyDisagreementsAreCountedAndTheFirstNamed) {
  Batch batch;
  for (uint64_t id = 100; id < 100 + 2 * kDisagreementsMax; ++id) {
    PutIndex(&batch, id, IndexRecord::Place::kTimers, kOrders, At(id));
  }
  Plant(batch);
  const VerifyReport report = Verify();
  EXPECT_EQ(report.disagreement_count, 2 * kDisagreementsMax);
  EXPECT_EQ(report.disagreements.size(), kDisagreementsMax);
}

TEST_F(VerifyTest, ProgressRises) {
  Batch batch;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const std::string key = DoneKey(At(1000 + i), JobId{500});
    batch.Put(Table::kDone, key, EncodeDoneRecord(key, {.queue = kOrders}));
  }
  Plant(batch);
  uint64_t last = 0;
  const auto report = VerifyStore(store_, [&](Table, uint64_t rows) {
    EXPECT_GT(rows, last);
    last = rows;
    return true;
  });
  EXPECT_GE(last, 20'000U);
  EXPECT_TRUE(report.ok());
}

TEST_F(VerifyTest, CanBeStopped) {
  Batch rows;
  for (uint64_t i = 0; i < 50'000; ++i) {
    rows.Put(Table::kMeta, "x" + std::to_string(i), "");
  }
  Plant(rows);
  const auto report = VerifyStore(store_, [](Table, uint64_t) { return false; });
  EXPECT_EQ(report.status().reason(), "stopped");
}

// A row may be a payload of many megabytes, and a stop waits for a verify.
TEST_F(VerifyTest, P9IsAskedWithEachRowWhetherToGoOn) {
  uint64_t asked = 0;
  const auto report = VerifyStore(store_, [&](Table, uint64_t) { return ++asked < 3; });
  EXPECT_EQ(report.status().reason(), "stopped");
  EXPECT_EQ(asked, 3U);
}

TEST_F(VerifyTest, RowsThatAreReadAgainToNameADisagreementCountOnce) {
  const uint64_t rows = WholeStore().size();
  EXPECT_EQ(Verify().rows, rows) << "its index rows are of version 1, and all looked at again";
  Drop(Table::kIndex, IndexKey(JobId{11}));
  const VerifyReport report = Verify();
  EXPECT_EQ(report.disagreement_count, 1U);
  EXPECT_EQ(report.rows, rows - 1);
}

TEST_F(VerifyTest, RowsAreEstimatedFromTheCounts) {
  const uint64_t rows = EstimateRows(store_);
  EXPECT_GT(rows, 0U);
  EXPECT_LE(rows, Verify().rows);
  Flip(Table::kMeta, QueueCountsKey(kMails));
  EXPECT_EQ(EstimateRows(store_), rows - 3) << "without the one job of the other queue";
}

}  // namespace
}  // namespace delayd::storage
