#include "daemon/committer.h"

#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/log.h"
#include "storage/memory_job_store.h"

namespace delayd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

engine::SealedBatch BatchOf(uint64_t sequence) {
  auto batch = std::make_shared<storage::Batch>();
  batch->Put(storage::Table::kMeta, "key" + std::to_string(sequence), "value");
  return {sequence, std::move(batch)};
}

// Submits and waits for the news.
class CommitterTest : public ::testing::Test {
 protected:
  std::pair<uint64_t, Status> Commit(Committer* committer, uint64_t sequence) {
    news_ = {};
    committer->Submit(BatchOf(sequence));
    return news_.get_future().get();
  }

  Committer::Done Done() {
    return [this](uint64_t sequence, Status status) { news_.set_value({sequence, status}); };
  }

  storage::MemoryJobStore store_;
  std::promise<std::pair<uint64_t, Status>> news_;
};

TEST_F(CommitterTest, EachBatchIsInTheStoreWhenItIsReported) {
  Committer committer(&store_, Done());
  for (uint64_t sequence = 1; sequence <= 100; ++sequence) {
    const auto [reported, status] = Commit(&committer, sequence);
    EXPECT_EQ(reported, sequence);
    EXPECT_TRUE(status.ok());
    std::string value;
    EXPECT_TRUE(store_.Get(storage::Table::kMeta, "key" + std::to_string(sequence), &value).ok());
  }
}

TEST_F(CommitterTest, NothingIsWrittenAfterAFailure) {
  store_.FailNextCommit(false);
  Committer committer(&store_, Done());
  const auto [first, failed] = Commit(&committer, 1);
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(failed.message(), HasSubstr("commit 1"));
  store_.Reopen();  // even if the store would take it again
  const auto [second, still_failed] = Commit(&committer, 2);
  EXPECT_EQ(second, 2U);
  EXPECT_FALSE(still_failed.ok());
  std::string value;
  EXPECT_EQ(store_.Get(storage::Table::kMeta, "key2", &value).code(), StatusCode::kNotFound);
}

TEST_F(CommitterTest, DestructorFinishesTheBatchUnderWay) {
  std::vector<uint64_t> reported;
  {
    Committer committer(&store_,
                        [&](uint64_t sequence, const Status&) { reported.push_back(sequence); });
    committer.Submit(BatchOf(1));
  }
  EXPECT_THAT(reported, ElementsAre(1));
}

TEST_F(CommitterTest, SecondBatchInFlightIsOurOwnMistake) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::promise<void> never;
        storage::MemoryJobStore store;
        Committer committer(&store, [&](uint64_t, const Status&) { never.get_future().wait(); });
        committer.Submit(BatchOf(1));
        committer.Submit(BatchOf(2));
        committer.Submit(BatchOf(3));
      },
      "check failed");
}

TEST(CommitWatchTest, EachCommitIsToldOnceWhenItIsLateAndOnceWhenItIsStuck) {
  CommitWatch watch(Millis(5), Millis(30));
  const auto told = [&](int64_t begins, int64_t age) {
    const auto before = log::Counts();
    watch.Look(std::chrono::steady_clock::time_point(Millis(begins)), Millis(age));
    const auto after = log::Counts();
    return std::pair(after[2] - before[2], after[3] - before[3]);  // warnings, errors
  };
  using Told = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(told(1, 4), Told(0, 0));
  EXPECT_EQ(told(1, 5), Told(1, 0));
  EXPECT_EQ(told(1, 29), Told(0, 0));
  EXPECT_EQ(told(1, 30), Told(0, 1));
  EXPECT_EQ(told(1, 99), Told(0, 0));
  EXPECT_EQ(told(2, 40), Told(0, 1));
  EXPECT_EQ(told(3, 5), Told(1, 0));
}

// Whose caller can tell nothing meanwhile.
TEST_F(CommitterTest, WhatItsCallerWritesIsWatched) {
  const auto errors = [] { return log::Counts()[static_cast<size_t>(log::Level::kError)]; };
  const uint64_t before = errors();
  Committer committer(
      &store_, Done(), DiskReserve({.interval = Millis(1)}), {}, CommitWatch(Millis(1), Millis(2)));
  const auto wait_for_news = [&] {
    while (errors() == before) {
      std::this_thread::yield();
    }
  };
  EXPECT_TRUE(committer.CommitHere(BatchOf(1), wait_for_news).ok());
  EXPECT_EQ(errors(), before + 1);
}

// A disk whose free space the test sets.
class DiskTest : public ::testing::Test {
 protected:
  DiskReserve Reserve(uint64_t bytes = 1600) {
    return DiskReserve(
        {.directory = "/d",
         .reserve = bytes,
         .interval = Millis(1),
         .free_bytes = [this](const std::string&) -> StatusOr<uint64_t> {
           if (broken_) {
             return Unavailable("no answer");
           }
           return free_.load();
         },
         .free_files = [this](const std::string&) -> StatusOr<uint64_t> { return files_.load(); },
         .is_read_only = [this](const std::string&) { return read_only_.load(); }});
  }

  std::atomic<uint64_t> free_ = 1600;
  std::atomic<uint64_t> files_ = 1000;
  std::atomic<bool> broken_ = false;
  std::atomic<bool> read_only_ = false;
};

TEST_F(DiskTest, TheVerdictChangesBelowTheReserveAndIsLiftedASixteenthAboveIt) {
  DiskReserve reserve = Reserve();
  EXPECT_FALSE(reserve.Look());
  free_ = 1599;
  EXPECT_TRUE(reserve.Look());
  EXPECT_EQ(reserve.refusal().reason(), "disk_full");
  EXPECT_THAT(reserve.refusal().message(), HasSubstr("free some space"));
  for (const uint64_t still_low : {0U, 1600U, 1699U}) {
    free_ = still_low;
    EXPECT_FALSE(reserve.Look()) << still_low;
    EXPECT_FALSE(reserve.refusal().ok());
  }
  free_ = 1700;
  EXPECT_TRUE(reserve.Look());
  EXPECT_TRUE(reserve.refusal().ok());
}

TEST_F(DiskTest, WhereHardlyAFileCanBeMadeTheDiskIsFullWhateverSpaceIsLeft) {
  DiskReserve reserve = Reserve();
  free_ = 1'000'000;
  files_ = 95;
  EXPECT_TRUE(reserve.Look());
  EXPECT_EQ(reserve.refusal().reason(), "disk_full");
  EXPECT_THAT(reserve.refusal().message(), HasSubstr("has fewer than 96 inodes left (df -i)"));
  files_ = 101;
  EXPECT_FALSE(reserve.Look());
  files_ = 102;
  EXPECT_TRUE(reserve.Look());
  EXPECT_TRUE(reserve.refusal().ok());
}

TEST_F(DiskTest, WhatIsShortNowIsToldWhenItIsSomethingElse) {
  DiskReserve reserve = Reserve();
  files_ = 100;  // above the least, whatever space is left
  free_ = 1599;
  EXPECT_TRUE(reserve.Look());
  EXPECT_FALSE(reserve.Look());
  EXPECT_THAT(reserve.refusal().message(), HasSubstr("free some space"));
  files_ = 95;
  EXPECT_TRUE(reserve.Look());
  EXPECT_THAT(reserve.refusal().message(), HasSubstr("inodes"));
  files_ = 10;
  EXPECT_FALSE(reserve.Look());
  files_ = 1000;
  EXPECT_TRUE(reserve.Look());
  EXPECT_THAT(reserve.refusal().message(), HasSubstr("free some space"));
}

TEST_F(DiskTest, AFileSystemThatWasMadeReadOnlyTakesNoNewJobs) {
  DiskReserve reserve = Reserve();
  free_ = 1'000'000;
  read_only_ = true;
  EXPECT_TRUE(reserve.Look());
  EXPECT_EQ(reserve.refusal().reason(), "disk_read_only");
  EXPECT_THAT(reserve.refusal().message(), HasSubstr("/d is read-only"));
  read_only_ = false;
  EXPECT_TRUE(reserve.Look());
  EXPECT_TRUE(reserve.refusal().ok());
}

// A dead FUSE or NFS does not even tell its free space.
TEST_F(DiskTest, AFileSystemThatNeitherAnswersNorTakesWritesTakesNoNewJobs) {
  DiskReserve reserve = Reserve();
  broken_ = true;
  read_only_ = true;
  EXPECT_TRUE(reserve.Look());
  EXPECT_EQ(reserve.refusal().reason(), "disk_read_only");
  EXPECT_THAT(reserve.refusal().message(), HasSubstr("or its server is gone"));
  read_only_ = false;
  EXPECT_TRUE(reserve.Look());
  EXPECT_TRUE(reserve.refusal().ok());
}

TEST_F(DiskTest, WithoutAReserveOnlyAFileSystemThatTakesNoWritesIsToldOf) {
  DiskReserve reserve = Reserve(0);
  EXPECT_TRUE(reserve.watched());
  free_ = 0;
  files_ = 0;
  EXPECT_FALSE(reserve.Look());
  read_only_ = true;
  EXPECT_TRUE(reserve.Look());
  EXPECT_EQ(reserve.refusal().reason(), "disk_read_only");
  read_only_ = false;
  EXPECT_TRUE(reserve.Look());
  EXPECT_TRUE(reserve.refusal().ok());
}

TEST_F(DiskTest, ADiskThatDoesNotAnswerChangesNothing) {
  DiskReserve reserve = Reserve();
  free_ = 0;
  EXPECT_TRUE(reserve.Look());
  broken_ = true;
  EXPECT_FALSE(reserve.Look());
  EXPECT_FALSE(reserve.refusal().ok());
}

TEST_F(DiskTest, ADiskThatDoesNotAnswerIsToldOnceUntilItHasAnswered) {
  DiskReserve reserve = Reserve();
  const auto warnings = [] { return log::Counts()[static_cast<size_t>(log::Level::kWarn)]; };
  const uint64_t before = warnings();
  for (const bool broken : {true, true, true, true, false, true}) {
    broken_ = broken;
    reserve.Look();
  }
  EXPECT_EQ(warnings(), before + 2);
}

TEST_F(DiskTest, OfADirectoryThatIsNotThereNothingIsKnown) {
  EXPECT_THAT(FreeBytes("/dev/null/none").status().message(), HasSubstr("free space"));
  EXPECT_THAT(FreeFiles("/dev/null/none").status().message(), HasSubstr("inodes"));
  EXPECT_TRUE(FreeBytes("/").ok());
  EXPECT_TRUE(FreeFiles("/").ok());
  EXPECT_FALSE(IsReadOnly("/dev/null/none"));
  EXPECT_FALSE(IsReadOnly("/dev/shm"));
}

TEST_F(DiskTest, TheCommitterTellsAtTheStartAndWhenItChanges) {
  storage::MemoryJobStore store;
  std::promise<Status> full;
  std::promise<Status> room;
  free_ = 0;
  Committer committer(
      &store,
      [](uint64_t, const Status&) {},
      Reserve(),
      [&](Status status) { (status.ok() ? room : full).set_value(std::move(status)); });
  EXPECT_EQ(full.get_future().get().reason(), "disk_full") << "before the first request";
  free_ = 5000;
  EXPECT_TRUE(room.get_future().get().ok());
}

TEST_F(DiskTest, CommitsGoOnOnAFullDisk) {
  storage::MemoryJobStore store;
  std::promise<Status> done;
  free_ = 0;
  Committer committer(
      &store,
      [&](uint64_t, Status status) { done.set_value(std::move(status)); },
      Reserve(),
      [](const Status&) {});
  committer.Submit(BatchOf(1));
  EXPECT_TRUE(done.get_future().get().ok());
}

}  // namespace
}  // namespace delayd
