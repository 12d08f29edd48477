// What a repair may take away or rebuild when a loss has set tables back to different batches, and
// how much of it at once.
#include <string>

#include "storage/keys.h"
#include "storage/record.h"
#include "tests/unit/storage/verify_fixture.h"

namespace delayd::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VerifyRepairTest : public VerifyTest {};

// Else nobody could enqueue under it again.
TEST_F(VerifyRepairTest, P9KeyOfAJobOfWhichNothingIsLeftIsSweptAway) {
  Batch batch;
  const std::string key = ClientKey(kOrders, "order:77");
  batch.Put(Table::kKeys, key, EncodeKeyRecord(key, {.id = JobId{77}}));
  Plant(batch);
  ExpectOne("key order:77 in queue number 1: it belongs to job 77, which is not there", true);
}

TEST_F(VerifyRepairTest, P9KeyOfAJobWhoseRecordIsLostIsSweptAway) {
  Drop(Table::kTimers, TimerKey(At(11), JobId{11}));
  Plant(Verify().repair);
  std::string value;
  EXPECT_EQ(store_.Get(Table::kKeys, ClientKey(kOrders, "order:11"), &value).code(),
            StatusCode::kNotFound);
  EXPECT_TRUE(store_.Get(Table::kIndex, IndexKey(JobId{11}), &value).ok()) << "as it was";
}

// It may be the record of this very job that cannot be read.
TEST_F(VerifyRepairTest, P9KeyOfAJobIsKeptWhereARecordIsDamaged) {
  Flip(Table::kTimers, TimerKey(At(11), JobId{11}));
  EXPECT_TRUE(Verify().repair.empty());
  Drop(Table::kIndex, IndexKey(JobId{11}));
  Plant(Verify().repair);
  std::string value;
  EXPECT_TRUE(store_.Get(Table::kKeys, ClientKey(kOrders, "order:11"), &value).ok());
}

TEST_F(VerifyRepairTest, P9ARepairKeepsTheKeyAndThePlaceOfAJobThatItFinds) {
  Drop(Table::kIndex, IndexKey(JobId{11}));
  Batch batch;
  const std::string key = ClientKey(kOrders, "order:77");
  batch.Put(Table::kKeys, key, EncodeKeyRecord(key, {.id = JobId{77}}));
  batch.Put(Table::kByQueue, ByQueueKey(kOrders, At(77), JobId{77}), {});
  Plant(batch);
  EXPECT_EQ(Verify().disagreement_count, 3U);
  Plant(Verify().repair);
  EXPECT_TRUE(Texts(Verify()).empty());
}

class KeptDoneTest : public VerifyTest {
 protected:
  void SetUp() override {
    VerifyTest::SetUp();
    Batch batch;
    batch.Put(
        Table::kDone, key_, EncodeDoneRecord(key_, {.queue = kOrders, .kept_until = At(900)}));
    PutIndex(&batch, 8, IndexRecord::Place::kDone, kOrders, At(1));
    PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 2});
    Plant(batch);
  }

  const std::string key_ = DoneKey(At(1), JobId{8});
};

TEST_F(KeptDoneTest, WithItsIndexRowItIsWhole) {
  EXPECT_TRUE(Texts(Verify()).empty());
}

TEST_F(KeptDoneTest, AMissingIndexRowIsRebuilt) {
  Drop(Table::kIndex, IndexKey(JobId{8}));
  ExpectOne("finished job 8: its index row is missing", true);
}

TEST_F(KeptDoneTest, AnIndexRowOfAForgottenJobIsSweptAway) {
  Drop(Table::kDone, key_);
  Batch batch;
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 1});
  Plant(batch);
  ExpectOne("finished job 8: an index row leads to done of queue number 1", true);
}

TEST_F(KeptDoneTest, P9ADamagedIndexRowIsRebuilt) {
  Flip(Table::kIndex, IndexKey(JobId{8}));
  ExpectOne("index of job 8", true);
}

TEST_F(KeptDoneTest, P9AKeyThatDoesNotSayThatItsJobHasFinishedIsRebuilt) {
  const std::string key = ClientKey(kOrders, "order:8");
  Batch batch;
  batch.Put(Table::kKeys, key, EncodeKeyRecord(key, {.id = JobId{8}, .fingerprint = 5}));
  Plant(batch);
  EXPECT_FALSE(Verify().disagreements.at(0).repairable) << "the end tells of no key";
  batch.Put(
      Table::kDone,
      key_,
      EncodeDoneRecord(
          key_, {.queue = kOrders, .key = "order:8", .cancelled = true, .kept_until = At(900)}));
  Plant(batch);
  ExpectOne("key order:8 in queue number 1: it does not say that job 8 has finished", true);
  const auto record = DecodeKeyRecord(key, Value(Table::kKeys, key));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->fingerprint, 5U);
  EXPECT_EQ(record->finished, At(1));
  EXPECT_EQ(record->expiry, At(900));
  EXPECT_TRUE(record->cancelled);
}

TEST_F(KeptDoneTest, P9AKeyThatLeadsToAnEndThatIsLostIsSweptAway) {
  Drop(Table::kDone, key_);
  const std::string key = ClientKey(kOrders, "order:8");
  Batch batch;
  batch.Put(Table::kKeys, key, EncodeKeyRecord(key, {.id = JobId{8}}));
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 1});
  Plant(batch);
  const VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), ::testing::Contains(HasSubstr("key order:8 in queue number 1")));
  Plant(report.repair);
  EXPECT_TRUE(Verify().ok());
}

TEST_F(KeptDoneTest, AnIndexRowOfAnEndThatIsNotShownIsSweptAway) {
  Batch batch;
  batch.Put(Table::kDone, key_, EncodeDoneRecord(key_, {.queue = kOrders}));
  Plant(batch);
  ExpectOne("finished job 8: it has an index row and needs none", true);
}

TEST_F(KeptDoneTest, AnIndexRowThatLeadsElsewhereIsNamed) {
  Batch batch;
  PutIndex(&batch, 8, IndexRecord::Place::kDone, kMails, At(1));
  Plant(batch);
  ExpectOne("finished job 8: its record is in done of queue number 1", false);
}

// A loss may leave its end where the index knows only the job, whose record is gone.
TEST_F(KeptDoneTest, P9AnIndexRowThatLeadsToTheRecordOfAJobThatHasFinishedIsRebuilt) {
  Batch batch;
  PutIndex(&batch, 8, IndexRecord::Place::kTimers, kOrders, At(8));
  batch.Put(Table::kByQueue, ByQueueKey(kOrders, At(8), JobId{8}), {});
  Plant(batch);
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("finished job 8: its record is in done of")));
  Plant(Verify().repair);
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("job 8: a by_queue row leads to timers")));
  Plant(Verify().repair);
  EXPECT_TRUE(Texts(Verify()).empty());
  std::string value;
  EXPECT_TRUE(store_.Get(Table::kDone, key_, &value).ok());
}

// Else the live job would lose its index row when the end is forgotten.
TEST_F(KeptDoneTest, P9TheEndOfAJobThatIsThereAgainIsSweptAway) {
  Batch batch;
  PutTimer(&batch, Record(8, kOrders));
  PutCounts(&batch, kOrders, {.pending = 3, .dead = 1, .done = 2});
  Plant(batch);
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("finished job 8: it is there again")));
  Plant(Verify().repair);
  Plant(Verify().repair);  // its queue counts one fewer then
  EXPECT_TRUE(Verify().ok());
}

TEST_F(KeptDoneTest, P9TheEndOfAJobThatIsThereAgainIsSweptAwayWhateverItsIndexRowSays) {
  Batch batch;
  PutTimer(&batch, Record(8, kOrders));
  batch.Put(Table::kIndex, IndexKey(JobId{8}), "");
  PutCounts(&batch, kOrders, {.pending = 3, .dead = 1, .done = 1});
  const std::string row = IndexKey(JobId{8});
  for (const std::string& index :
       {std::string(),
        EncodeIndexRecord(row,
                          {.place = IndexRecord::Place::kDone, .queue = kOrders, .at = At(1)})}) {
    batch.Put(Table::kIndex, row, index);
    batch.Put(
        Table::kDone, key_, EncodeDoneRecord(key_, {.queue = kOrders, .kept_until = At(900)}));
    Plant(batch);
    Plant(Verify().repair);
    Plant(Verify().repair);
    EXPECT_TRUE(Texts(Verify()).empty());
    std::string value;
    EXPECT_EQ(store_.Get(Table::kDone, key_, &value).code(), StatusCode::kNotFound);
  }
}

// Those that nobody can repair are there again in each round.
TEST_F(VerifyRepairTest, P9WhatCannotBeRepairedKeepsNothingElseFromRepair) {
  Batch batch;
  for (uint64_t id = 100; id < 100 + 2 * kDisagreementsMax; ++id) {
    PutIndex(&batch, id, IndexRecord::Place::kTimers, kOrders, At(id));
  }
  const std::string row = ByQueueKey(kOrders, At(5), JobId{10});
  batch.Put(Table::kByQueue, row, {});
  Plant(batch);
  const VerifyReport report = Verify();
  EXPECT_EQ(report.disagreements.size(), kDisagreementsMax) << "it is not among the named ones";
  EXPECT_EQ(report.repair.size(), 1U);
  Plant(report.repair);
  std::string value;
  EXPECT_EQ(store_.Get(Table::kByQueue, row, &value).code(), StatusCode::kNotFound);
  EXPECT_EQ(Verify().disagreement_count, 2 * kDisagreementsMax);
}

TEST_F(VerifyRepairTest, OneRepairIsBoundedAndTheNextGoesOn) {
  constexpr uint64_t kRows = kRepairsMax + 5;
  Batch batch;
  for (uint64_t i = 0; i < kRows; ++i) {
    batch.Put(Table::kByQueue, ByQueueKey(kOrders, At(1000 + i), JobId{10}), {});
  }
  Plant(batch);
  const VerifyReport report = Verify();
  EXPECT_EQ(report.disagreement_count, kRows);
  EXPECT_EQ(report.repair.size(), kRepairsMax);
  Plant(report.repair);
  Plant(Verify().repair);
  EXPECT_TRUE(Verify().ok());
}

}  // namespace
}  // namespace delayd::storage
