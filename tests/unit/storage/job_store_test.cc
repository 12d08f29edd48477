// The contract of storage/job_store.h, run on every store there is.
#include "storage/job_store.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/memory_job_store.h"
#include "storage/rocks_job_store.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

// A store that can be closed and opened again on the same data.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual JobStore& store() = 0;
  virtual void Reopen() = 0;
};

class MemorySubject final : public Subject {
 public:
  JobStore& store() override { return store_; }

  void Reopen() override { store_.Reopen(); }

 private:
  MemoryJobStore store_;
};

class RocksSubject final : public Subject {
 public:
  RocksSubject() { Open(); }

  JobStore& store() override { return *store_; }

  void Reopen() override {
    store_.reset();
    Open();
  }

 private:
  void Open() {
    auto opened = OpenRocksJobStore({.path = dir_.Sub("data")});
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    store_ = std::move(opened).value();
  }

  test::TempDir dir_;
  std::unique_ptr<JobStore> store_;
};

struct Kind {
  const char* name;
  std::unique_ptr<Subject> (*make)();
};

class JobStoreTest : public ::testing::TestWithParam<Kind> {
 protected:
  JobStoreTest() : subject_(GetParam().make()) {}

  JobStore& store() { return subject_->store(); }

  std::vector<std::string> Keys(Table table, std::string_view from, std::string_view to) {
    std::vector<std::string> keys;
    const Status status =
        store().Scan(table, from, to, [&](std::string_view key, std::string_view) {
          keys.emplace_back(key);
          return true;
        });
    EXPECT_TRUE(status.ok()) << status.message();
    return keys;
  }

  std::unique_ptr<Subject> subject_;
};

using Strings = std::vector<std::string>;

Batch Puts(Table table, const Strings& keys) {
  Batch batch;
  for (const std::string& key : keys) {
    batch.Put(table, key, "value of " + key);
  }
  return batch;
}

TEST_P(JobStoreTest, AbsentKeyIsNotFound) {
  std::string value;
  EXPECT_EQ(store().Get(Table::kIndex, "x", &value).code(), StatusCode::kNotFound);
}

TEST_P(JobStoreTest, CommittedPutIsRead) {
  ASSERT_TRUE(store().Commit(Puts(Table::kIndex, {"a"})).ok());
  std::string value;
  ASSERT_TRUE(store().Get(Table::kIndex, "a", &value).ok());
  EXPECT_EQ(value, "value of a");
}

TEST_P(JobStoreTest, ACommitTellsOnceThatItIsDurableOnItsOwnThread) {
  std::vector<std::thread::id> told;
  const auto tell = [&] { told.push_back(std::this_thread::get_id()); };
  ASSERT_TRUE(store().Commit(Puts(Table::kIndex, {"a", "b"}), tell).ok());
  EXPECT_EQ(told, std::vector{std::this_thread::get_id()});
  ASSERT_TRUE(store().Commit(Batch(), tell).ok());
  EXPECT_EQ(told.size(), 1U) << "an empty batch has nothing to tell";
}

TEST_P(JobStoreTest, WhatIsReadWhenACommitIsDurableIsAllOfABatchOrNothing) {
  ASSERT_TRUE(store().Commit(Puts(Table::kIndex, {"a"})).ok());
  ASSERT_TRUE(store()
                  .Commit(Puts(Table::kIndex, {"b", "c"}),
                          [&] {
                            const size_t rows = Keys(Table::kIndex, "a", "z").size();
                            EXPECT_TRUE(rows == 1 || rows == 3) << rows;
                          })
                  .ok());
  EXPECT_EQ(Keys(Table::kIndex, "a", "z").size(), 3U);
}

TEST_P(JobStoreTest, TablesAreApart) {
  for (size_t i = 0; i < kTableCount; ++i) {
    Batch batch;
    batch.Put(static_cast<Table>(i), "key", std::to_string(i));
    ASSERT_TRUE(store().Commit(batch).ok());
  }
  for (size_t i = 0; i < kTableCount; ++i) {
    std::string value;
    ASSERT_TRUE(store().Get(static_cast<Table>(i), "key", &value).ok());
    EXPECT_EQ(value, std::to_string(i));
  }
}

TEST_P(JobStoreTest, LaterOperationOfABatchWins) {
  Batch batch;
  batch.Put(Table::kIndex, "kept", "1");
  batch.Put(Table::kIndex, "kept", "2");
  batch.Put(Table::kIndex, "gone", "1");
  batch.Delete(Table::kIndex, "gone");
  batch.Delete(Table::kIndex, "back");
  batch.Put(Table::kIndex, "back", "3");
  ASSERT_TRUE(store().Commit(batch).ok());
  std::string value;
  ASSERT_TRUE(store().Get(Table::kIndex, "kept", &value).ok());
  EXPECT_EQ(value, "2");
  EXPECT_FALSE(store().Get(Table::kIndex, "gone", &value).ok());
  ASSERT_TRUE(store().Get(Table::kIndex, "back", &value).ok());
  EXPECT_EQ(value, "3");
}

TEST_P(JobStoreTest, DeletingAnAbsentKeyIsHarmless) {
  Batch batch;
  batch.Delete(Table::kIndex, "never there");
  EXPECT_TRUE(store().Commit(batch).ok());
}

TEST_P(JobStoreTest, EmptyValueIsAValue) {
  Batch batch;
  batch.Put(Table::kByQueue, "key", {});
  ASSERT_TRUE(store().Commit(batch).ok());
  std::string value = "before";
  ASSERT_TRUE(store().Get(Table::kByQueue, "key", &value).ok());
  EXPECT_EQ(value, "");
}

TEST_P(JobStoreTest, EmptyBatchIsASuccess) {
  EXPECT_TRUE(store().Commit(Batch()).ok());
}

TEST_P(JobStoreTest, ScanVisitsTheHalfOpenRangeInOrder) {
  ASSERT_TRUE(store().Commit(Puts(Table::kTimers, {"d", "b", "a", "c", "e"})).ok());
  EXPECT_EQ(Keys(Table::kTimers, "b", "e"), (Strings{"b", "c", "d"}));
  EXPECT_EQ(Keys(Table::kTimers, "b", ""), (Strings{"b", "c", "d", "e"}));
  EXPECT_EQ(Keys(Table::kTimers, "bb", "cc"), (Strings{"c"}));
  EXPECT_EQ(Keys(Table::kTimers, "f", ""), (Strings{}));
  EXPECT_EQ(Keys(Table::kTimers, "c", "b"), (Strings{}));
}

TEST_P(JobStoreTest, ScanOrdersBytesAsUnsigned) {
  ASSERT_TRUE(store().Commit(Puts(Table::kTimers, {"\xff", "\x7f", "\x80", "\x01"})).ok());
  EXPECT_EQ(Keys(Table::kTimers, "\x01", ""), (Strings{"\x01", "\x7f", "\x80", "\xff"}));
}

TEST_P(JobStoreTest, ScanOfASmallTableMayStartAtItsBeginning) {
  ASSERT_TRUE(store().Commit(Puts(Table::kQueues, {"orders", "mails"})).ok());
  EXPECT_EQ(Keys(Table::kQueues, "", ""), (Strings{"mails", "orders"}));
  EXPECT_EQ(Keys(Table::kQueues, {}, {}), (Strings{"mails", "orders"}));
}

TEST_P(JobStoreTest, ScanStopsWhenTheVisitorSaysSo) {
  ASSERT_TRUE(store().Commit(Puts(Table::kTimers, {"a", "b", "c"})).ok());
  int visits = 0;
  const auto visit = [&](std::string_view, std::string_view) { return ++visits < 2; };
  ASSERT_TRUE(store().Scan(Table::kTimers, "a", "", visit).ok());
  EXPECT_EQ(visits, 2);
}

TEST_P(JobStoreTest, ScanBeginningUnderTombstonesIsAMistakeOfOurs) {
  // RocksDB has threads: the death must happen in a process of its own.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  // It leaves its directory, 70 MB, which lies in this one and goes with it.
  const test::TempDirsWithin within;
  for (const Table table : {Table::kTimers, Table::kByQueue, Table::kDone}) {
    EXPECT_DEATH((void)store().Scan(table, "", "z", [](auto, auto) { return true; }), "from");
  }
}

TEST_P(JobStoreTest, CommittedRowsOutliveTheProcess) {
  ASSERT_TRUE(store().Commit(Puts(Table::kTimers, {"a", "b"})).ok());
  subject_->Reopen();
  EXPECT_EQ(Keys(Table::kTimers, "a", ""), (Strings{"a", "b"}));
}

TEST_P(JobStoreTest, CommittedRowsOutliveAnOrderlyEnd) {
  ASSERT_TRUE(store().Commit(Puts(Table::kTimers, {"a", "b"})).ok());
  ASSERT_TRUE(store().Close().ok());
  ASSERT_TRUE(store().Close().ok()) << "closing twice is harmless";
  subject_->Reopen();
  EXPECT_EQ(Keys(Table::kTimers, "a", ""), (Strings{"a", "b"}));
}

TEST_P(JobStoreTest, ClosedStoreRefusesEverything) {
  ASSERT_TRUE(store().Close().ok());
  std::string value;
  EXPECT_EQ(store().Commit(Puts(Table::kIndex, {"a"})).reason(), "store_closed");
  EXPECT_EQ(store().Get(Table::kIndex, "a", &value).reason(), "store_closed");
  EXPECT_EQ(store().Scan(Table::kIndex, "a", "", [](auto, auto) { return true; }).reason(),
            "store_closed");
}

template <typename T>
std::unique_ptr<Subject> Make() {
  return std::make_unique<T>();
}

INSTANTIATE_TEST_SUITE_P(Stores,
                         JobStoreTest,
                         ::testing::Values(Kind{"Memory", &Make<MemorySubject>},
                                           Kind{"Rocks", &Make<RocksSubject>}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(MemoryJobStoreTest, P1FailedCommitStopsTheStore) {
  for (const bool keep : {false, true}) {
    MemoryJobStore store;
    store.FailNextCommit(keep);
    EXPECT_FALSE(store.Commit(Puts(Table::kIndex, {"a"})).ok());
    EXPECT_EQ(store.Commit(Puts(Table::kIndex, {"b"})).reason(), "store_stopped");
    store.Reopen();
    std::string value;
    EXPECT_EQ(store.Get(Table::kIndex, "a", &value).ok(), keep);
    EXPECT_FALSE(store.Get(Table::kIndex, "b", &value).ok());
    EXPECT_TRUE(store.Commit(Puts(Table::kIndex, {"c"})).ok());
  }
}

TEST(RocksJobStoreThreadsTest, ReadersRunBesideTheCommitter) {
  RocksSubject subject;
  JobStore& store = subject.store();
  // Both rows of a pair come in one batch: a reader who sees one must find the other.
  std::thread reader([&store] {
    for (int round = 0; round < 300; ++round) {
      std::string last;
      const auto visit = [&last](std::string_view key, std::string_view) {
        last = key;
        return true;
      };
      EXPECT_TRUE(store.Scan(Table::kTimers, "a", "", visit).ok());
      std::string value;
      if (!last.empty()) {
        EXPECT_TRUE(store.Get(Table::kIndex, last, &value).ok()) << last;
      }
    }
  });
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(1000 + i);
    Batch batch = Puts(Table::kTimers, {key});
    batch.Put(Table::kIndex, key, "value of " + key);
    EXPECT_TRUE(store.Commit(batch).ok());
  }
  reader.join();
}

}  // namespace
}  // namespace delayd::storage
