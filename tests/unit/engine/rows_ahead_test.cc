#include "daemon/engine/rows_ahead.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "storage/keys.h"
#include "storage/memory_job_store.h"
#include "tests/unit/engine/engine_harness.h"
#include "tests/unit/engine/reads_through.h"

namespace delayd::engine {
namespace {

using storage::Table;

class CountedScans final : public ReadsThrough {
 public:
  using ReadsThrough::ReadsThrough;

  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    ++scans;
    const Status scanned = ReadsThrough::Scan(table, from, to, visit);
    return fails ? Unavailable("the disk does not answer", "storage_io") : scanned;
  }

  mutable int scans = 0;
  bool fails = false;
};

WallTime DueOf(uint64_t i) {
  return WallFromMillis(static_cast<int64_t>(1000 + i));
}

std::string KeyOf(uint64_t i) {
  return storage::TimerKey(DueOf(i), JobId{i});
}

const WallTime kNoEnd = WallFromMillis(limits::kWallMsMax);

class RowsAheadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint64_t i = 0; i < kRows; ++i) {
      Put(i, std::to_string(i));
    }
  }

  void Put(uint64_t i, const std::string& value) {
    storage::Batch batch;
    batch.Put(Table::kTimers, KeyOf(i), value);
    ASSERT_TRUE(store_.Commit(batch).ok());
  }

  std::string Find(uint64_t i, size_t wanted = kRows) {
    return std::string(ahead_.Find(KeyOf(i), kNoEnd, wanted).value_or("nothing"));
  }

  static constexpr uint64_t kRows = 2 * RowsAhead::kRowsMax;

  storage::MemoryJobStore store_;
  CountedScans reader_{store_};
  RowsAhead ahead_{reader_};
};

TEST_F(RowsAheadTest, ManyRowsTakenInOrderAreOneScan) {
  for (uint64_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(Find(i), std::to_string(i));
  }
  EXPECT_EQ(reader_.scans, 2);
}

TEST_F(RowsAheadTest, NeighboursMayBeTakenInAnotherOrder) {
  EXPECT_EQ(Find(0), "0");
  for (const uint64_t i : {7U, 3U, 5U, 4U, 127U}) {
    EXPECT_EQ(Find(i), std::to_string(i));
  }
  EXPECT_EQ(reader_.scans, 1);
}

TEST_F(RowsAheadTest, FewRowsAreLeftToSingleReads) {
  EXPECT_EQ(Find(0, RowsAhead::kRowsMin - 1), "nothing");
  EXPECT_EQ(reader_.scans, 0);
}

TEST_F(RowsAheadTest, NothingIsReadBehindTheEnd) {
  EXPECT_EQ(ahead_.Find(KeyOf(0), DueOf(20), kRows), "0");
  EXPECT_EQ(Find(19), "19");
  EXPECT_EQ(reader_.scans, 1);
  EXPECT_EQ(Find(20), "20");
  EXPECT_EQ(reader_.scans, 2);
}

TEST_F(RowsAheadTest, AChangedRowIsReadAgain) {
  EXPECT_EQ(Find(0), "0");
  Put(1, "new");
  ahead_.Forget(KeyOf(1));
  ahead_.Forget(KeyOf(1'000'000));
  EXPECT_EQ(Find(2), "2");
  EXPECT_EQ(reader_.scans, 1);
  for (uint64_t i = 3; i < 40; ++i) {
    EXPECT_EQ(Find(i), std::to_string(i));
  }
  EXPECT_EQ(Find(1), "new");
  EXPECT_EQ(reader_.scans, 2);
}

TEST_F(RowsAheadTest, AfterAScanOfLittleUseRowsAreReadOneByOneForAWhile) {
  EXPECT_EQ(Find(0), "0");
  constexpr uint64_t kElsewhere = RowsAhead::kRowsMax + 72;
  EXPECT_EQ(Find(kElsewhere), std::to_string(kElsewhere))
      << "the second scan tells that the first was of little use";
  EXPECT_EQ(Find(1), "nothing");
  EXPECT_EQ(Find(kElsewhere + 1), std::to_string(kElsewhere + 1)) << "what is there is taken";
  EXPECT_EQ(reader_.scans, 2);
}

TEST_F(RowsAheadTest, AScanThatIsCutShortIsNotRepeated) {
  EXPECT_EQ(ahead_.Find(KeyOf(0), DueOf(3), kRows), "0");
  EXPECT_EQ(Find(2), "2");
  EXPECT_EQ(Find(3), "nothing");
  EXPECT_EQ(reader_.scans, 1);
}

TEST_F(RowsAheadTest, AFailedScanLeavesNothing) {
  reader_.fails = true;
  EXPECT_EQ(Find(0), "nothing");
  EXPECT_EQ(Find(1), "nothing");
}

TEST_F(RowsAheadTest, ARowThatIsNotThereIsNotFound) {
  EXPECT_EQ(Find(1'000'000), "nothing");
  EXPECT_EQ(ahead_.Find(storage::TimerKey(WallFromMillis(999), JobId{1}), kNoEnd, kRows),
            std::nullopt);
}

// The row may be read ahead before a change, or while one is under way.
TEST(RowsAheadEngineTest, AJobIsHandedOutAsItIsAndNotAsItWasReadAhead) {
  for (const bool is_under_way : {false, true}) {
    EngineHarness harness;
    std::vector<JobId> ids;
    for (size_t i = 0; i < 2 * RowsAhead::kRowsMin; ++i) {
      ids.push_back(harness.EnqueueOk(In(Millis(0))).id);
    }
    const JobView last = harness.ShowOk(ids.back());
    Reschedule command;
    command.job = ids.back();
    command.due = DueAt{last.due};
    const auto lease = [] { return Lease{.queues = {"default"}, .count = 1}; };
    const RequestId first = is_under_way ? harness.Send(command) : harness.Send(lease());
    if (!is_under_way) {
      harness.CommitAll();
    }
    const RequestId second = is_under_way ? harness.Send(lease()) : harness.Send(command);
    harness.CommitAll();
    EXPECT_TRUE(harness.Take(first).status.ok());
    EXPECT_TRUE(harness.Take(second).status.ok());
    const std::vector<JobView> jobs = harness.LeaseNow(100);
    ASSERT_EQ(jobs.size(), ids.size() - 1);
    for (const JobView& job : jobs) {
      EXPECT_EQ(job.due_kind, job.id == last.id ? DueKind::kAbsolute : DueKind::kRelative)
          << "job " << ToInt(job.id);
    }
  }
}

TEST_F(RowsAheadTest, ARowThatIsGoneIsNotFoundThoughOthersFollowIt) {
  storage::Batch batch;
  batch.Delete(Table::kTimers, KeyOf(5));
  ASSERT_TRUE(store_.Commit(batch).ok());
  EXPECT_EQ(Find(5), "nothing");
  EXPECT_EQ(Find(6), "6");
}

}  // namespace
}  // namespace delayd::engine
