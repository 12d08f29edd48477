#include "daemon/committer.h"

#include <future>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/memory_job_store.h"

namespace delayd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

engine::SealedBatch BatchOf(uint64_t sequence) {
  auto batch = std::make_shared<storage::Batch>();
  batch->Put(storage::Table::kMeta, "key" + std::to_string(sequence), "value");
  return {sequence, std::move(batch)};
}

// Submits and waits for the news.
class CommitterTest : public testing::Test {
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

}  // namespace
}  // namespace delayd
