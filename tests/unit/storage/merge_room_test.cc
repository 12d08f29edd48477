// Merges of tables on a disk that is nearly full: the store goes on.
#include "storage/merge_room.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include "storage/keys.h"
#include "storage/rocks_figures.h"
#include "storage/rocks_store.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/count_rows.h"
#include "tests/unit/storage/no_merges.h"
#include "tests/unit/storage/small_disk.h"

namespace delayd::storage {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 40;
constexpr size_t kLastLevel = 6;
constexpr uint64_t kLogBytes = uint64_t{256} << 10;
// Merges leave what one log holds, and as much for commits meanwhile.
constexpr uint64_t kLittle = 4 * kLogBytes;

// Who else writes to the disk.
enum class Others : uint8_t { kRest, kTakeAll, kTakeAllUntold };

class SharedDisk final : public SmallDisk {
 public:
  SharedDisk() : SmallDisk(kPlenty) {}

  rocksdb::IOStatus NewWritableFile(const std::string& name,
                                    const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    const Others others =
        name.ends_with(".sst") ? at_next_table.exchange(Others::kRest) : Others::kRest;
    if (others == Others::kTakeAll) {
      free = 0;
    }
    if (name.ends_with(".sst") && IsOnThreadOfMerges()) {
      is_held.wait(true);
    }
    return others == Others::kTakeAllUntold
               ? rocksdb::IOStatus::NoSpace("others took it")
               : target()->NewWritableFile(name, options, result, debug);
  }

  std::atomic<Others> at_next_table = Others::kRest;
  std::atomic<bool> is_held = false;  // merges get no file meanwhile

 private:
  static bool IsOnThreadOfMerges() {
    std::array<char, 16> name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    return std::string_view(name.data()) == "rocksdb:low";
  }
};

class MergeRoomTest : public ::testing::Test {
 protected:
  void Open(uint64_t sweep_deletes_min = 10'000) {
    auto store = OpenRocksJobStore({.path = dir_.Sub("data"),
                                    .env = env_.get(),
                                    .wal_bytes_max = kLogBytes,
                                    .sweep_deletes_min = sweep_deletes_min});
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
  }

  // A file of level 0 with rows of all ids from one to another.
  void Flush(uint64_t from = 0, uint64_t to = 300) {
    Batch batch;
    for (uint64_t id = from; id < to; ++id) {
      batch.Put(Table::kTimers, Key(id), std::string(1000, 'x'));
    }
    ASSERT_TRUE(store_->Commit(batch).ok());
    // The log is full: RocksDB writes its tables with the next commit.
    const uint64_t before = Files();
    while (Files() == before && !::testing::Test::HasFailure()) {
      Batch next;
      next.Put(Table::kTimers, Key(from), std::string(1000, 'x'));
      ASSERT_TRUE(store_->Commit(next).ok());
    }
  }

  // Past the 36 files at which RocksDB would let no write through. The merge of the first four has
  // a thread of its own: if it came to run later, it would find more files, or no write could.
  void FillLevel0WhileNoMergeFits() {
    disk_->free = kLittle;
    for (int file = 1; file <= 40; ++file) {
      Flush();
      while (file == 4 && Figures().merges_refused == 0) {
        std::this_thread::yield();
      }
    }
  }

  static std::string Key(uint64_t id) {
    return std::string(TimerKey(WallFromMillis(1000), JobId{id}).view());
  }

  RocksFigures Figures() { return ReadRocksFigures(*store_); }

  uint64_t Files(size_t level = 0) {
    return Figures().tables[static_cast<size_t>(Table::kTimers)].files[level];
  }

  test::TempDir dir_;
  std::shared_ptr<SharedDisk> disk_ = std::make_shared<SharedDisk>();
  std::unique_ptr<rocksdb::Env> env_ = test::NewFaultEnv(disk_);
  std::unique_ptr<JobStore> store_;
};

TEST_F(MergeRoomTest, WhatDoesNotFitIsNotMergedAndCommitsGoOnUntilThereIsRoom) {
  static std::mutex mutex;
  static std::string told;
  OnMergeRefused([](const std::string& what) {
    const std::lock_guard lock(mutex);
    told += what + "\n";
  });
  Open();
  FillLevel0WhileNoMergeFits();
  EXPECT_GE(Files(), 40U);
  EXPECT_EQ(Figures().tables_waiting, 1U);
  EXPECT_GE(Figures().merges_refused, 1U);
  EXPECT_EQ(Figures().background_errors, 0U);
  {
    const std::lock_guard lock(mutex);
    // Where a flush takes its time, the commits that wait for it fill a file of one row.
    EXPECT_THAT(told,
                ::testing::MatchesRegex(
                    "a merge in table timers may write [12]MiB and must leave 1MiB for commits, "
                    "flushes and other merges, and 1MiB are free\n"));
  }
  disk_->free = kPlenty;
  while (Files() > 4) {
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), 300U);
  EXPECT_TRUE(store_->Check().ok());
  EXPECT_TRUE(store_->Close().ok());
}

TEST_F(MergeRoomTest, AStoreWithManyFilesThatCannotBeMergedTakesCommitsFromTheStartOn) {
  Open();
  FillLevel0WhileNoMergeFits();
  store_.reset();
  Open();
  Flush();
  EXPECT_GT(Files(), 40U);
}

// It is tried when others have left their threads; then writes must not have stopped.
TEST_F(MergeRoomTest, P1CommitsGoOnWhereAMergeThatWillNotFitWaitsForItsTurn) {
  Open();
  disk_->free = kLittle;
  {
    const NoMerges busy;
    for (int file = 0; file < 40; ++file) {
      Flush();
    }
  }
  disk_->free = kPlenty;
  while (Files() > 4) {
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), 300U);
}

// When writes stopped, it would have fitted.
TEST_F(MergeRoomTest, P1CommitsGoOnWhereTheDiskIsFilledWhileTheyWaitForAMerge) {
  Open();
  std::future<void> filled;
  {
    const NoMerges busy;
    filled = std::async(std::launch::async, [this] {
      for (int file = 0; file < 40; ++file) {
        Flush();
      }
    });
    while (!Figures().write_stopped) {
      std::this_thread::yield();
    }
    disk_->free = kLittle;
  }
  EXPECT_EQ(filled.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  disk_->free = kPlenty;  // what still waits would do so for ever
}

// The merges have their room, and make level 0 smaller soon.
TEST_F(MergeRoomTest, WritesStopAtManyFilesWhileSomeOfThemAreBeingMerged) {
  Open();
  disk_->is_held = true;
  disk_->free = 10 * kLittle;  // 36 files and what merges may write are more
  const std::future<void> filled = std::async(std::launch::async, [this] {
    for (int file = 0; file < 40; ++file) {
      Flush();
    }
  });
  const auto is_over = [&filled] {
    return filled.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  while (!Figures().write_stopped && !is_over()) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(is_over());
  disk_->free = kPlenty;
  disk_->is_held = false;
  disk_->is_held.notify_all();
}

TEST_F(MergeRoomTest, WhatRemovesMoreThanItWritesFits) {
  Open();
  disk_->free = kLittle;
  for (uint64_t file = 0; file < 3; ++file) {
    Flush(file * 300, file * 300 + 300);
  }
  Batch batch;
  for (uint64_t id = 0; id < 900; ++id) {
    batch.Delete(Table::kTimers, Key(id));
  }
  ASSERT_TRUE(store_->Commit(batch).ok());
  ASSERT_TRUE(store_->Close().ok());
  Open();
  while (Files() > 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Figures().merges_refused, 0U);
  EXPECT_EQ(CountRows(*store_), 0U);
}

// Of RocksDB's own there is none: files are too few.
TEST_F(MergeRoomTest, ASweepThatWasRefusedIsMadeUpForWhenThereIsRoomAgain) {
  Open(/*sweep_deletes_min=*/100);
  for (uint64_t file = 0; file < 2; ++file) {
    Flush(file * 300, file * 300 + 300);
  }
  disk_->free = kLogBytes;
  Batch batch;
  for (uint64_t id = 0; id < 600; id += 3) {
    batch.Delete(Table::kTimers, Key(id));
  }
  ASSERT_TRUE(store_->Commit(batch).ok());
  while (Figures().tables_waiting == 0) {
    std::this_thread::yield();
  }
  disk_->free = 2 * kLogBytes;
  EXPECT_EQ(Figures().tables_waiting, 1U) << "of less than it needs";
  disk_->free = kPlenty;
  EXPECT_EQ(Figures().tables_waiting, 0U);
  while (Files() > 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), 400U);
  EXPECT_EQ(Figures().background_errors, 0U);
}

// Its flush could fail, and that would end the store.
TEST_F(MergeRoomTest, ASweepFlushesNothingOnADiskThatMayHaveNoRoomForIt) {
  Open(/*sweep_deletes_min=*/100);
  disk_->free = kLogBytes - 1;
  for (const bool is_delete : {false, true}) {
    Batch batch;
    for (uint64_t id = 0; id < 600; id += is_delete ? 3 : 1) {
      if (is_delete) {
        batch.Delete(Table::kTimers, Key(id));
      } else {
        batch.Put(Table::kTimers, Key(id), "row");
      }
    }
    ASSERT_TRUE(store_->Commit(batch).ok());
  }
  while (AsRocks(*store_).sweeps_done() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Files(), 0U);
  disk_->free = kPlenty;
  while (Files(kLastLevel) == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(CountRows(*store_), 400U);
}

// Others may take the room that a merge had when it began.
TEST_F(MergeRoomTest, AMergeThatRunsOutOfRoomIsTriedAgain) {
  for (const Others others : {Others::kTakeAll, Others::kTakeAllUntold}) {
    disk_->free = kLittle;
    Open();
    for (int file = 0; file < 4; ++file) {
      Flush();
    }
    ASSERT_TRUE(store_->Close().ok());
    Open();  // from here on only merges make tables
    disk_->at_next_table = others;
    disk_->free = kPlenty;
    while (disk_->at_next_table != Others::kRest) {
      std::this_thread::yield();
    }
    const uint64_t refused = Figures().merges_refused;
    while (others == Others::kTakeAll && Figures().merges_refused == refused && Files() > 0) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(others == Others::kTakeAllUntold || Files() > 0) << "it was not stopped";
    disk_->free = kPlenty;
    if (others == Others::kTakeAllUntold) {
      while (Figures().tables_waiting == 0) {
        std::this_thread::yield();
      }
      EXPECT_TRUE(store_->Close().ok());
      Open();  // else in a minute
    }
    while (Files() > 0) {
      std::this_thread::yield();
    }
    EXPECT_EQ(Figures().background_errors, 0U);
    EXPECT_TRUE(store_->Check().ok());
    EXPECT_EQ(CountRows(*store_), 300U);
    EXPECT_TRUE(store_->Close().ok());
  }
}

// A quota: nothing that the disk says of itself shows it.
class MergeQuotaTest : public ::testing::Test {
 protected:
  void SetUp() override { answer_ = EDQUOT; }

  static int Ask(const std::string& /*directory*/, uint64_t bytes) {
    asked_ = bytes;
    return answer_;
  }

  static rocksdb::CompactionJobInfo Merge(const rocksdb::Status& status = rocksdb::Status::OK()) {
    rocksdb::CompactionJobInfo merge;
    merge.cf_name = "timers";
    merge.status = status;
    return merge;
  }

  // May it make its first file?
  static bool Try(MergeRoom* room) {
    asked_ = 0;
    room->OnCompactionBegin(nullptr, Merge());
    const bool may_begin = room->MayBegin();
    if (!may_begin) {
      room->OnCompactionCompleted(nullptr, Merge(rocksdb::Status::NoSpace()));
    }
    return may_begin;
  }

  static inline int answer_ = EDQUOT;
  static inline uint64_t asked_ = 0;
  std::shared_ptr<SmallDisk> disk_ = std::make_shared<SmallDisk>(kPlenty);
};

TEST_F(MergeQuotaTest, WhatTheDiskRefusesThoughMuchIsFreeIsToldAsWaitingAndNotTriedAtOnce) {
  MergeRoom room(disk_, "/", kLogBytes, Ask, std::chrono::hours(1));
  EXPECT_FALSE(Try(&room));
  EXPECT_EQ(asked_, kLogBytes * 3 / 4) << "commits beside it keep some";
  EXPECT_TRUE(room.IsWaiting("timers"));
  EXPECT_EQ(room.CountWaiting(), 1U);
  answer_ = 0;
  EXPECT_FALSE(Try(&room));
  EXPECT_EQ(asked_, 0U) << "too early to ask again";
  EXPECT_EQ(room.CountWaiting(), 1U);
}

TEST_F(MergeQuotaTest, WhatTheDiskRefusedIsTriedAgainLater) {
  MergeRoom room(disk_, "/", kLogBytes, Ask, MergeRoom::Clock::duration(0));
  EXPECT_FALSE(Try(&room));
  EXPECT_FALSE(room.IsWaiting("timers"));
  answer_ = 0;
  EXPECT_TRUE(Try(&room));
  EXPECT_NE(asked_, 0U);
  asked_ = 0;
  EXPECT_TRUE(room.MayBegin());
  EXPECT_EQ(asked_, 0U) << "once a merge";
  EXPECT_EQ(room.CountWaiting(), 0U);
}

TEST_F(MergeQuotaTest, AMergeThatMetAQuotaOnItsWayWaitsToo) {
  MergeRoom room(disk_, "/", kLogBytes, Ask, std::chrono::hours(1));
  answer_ = 0;
  EXPECT_TRUE(Try(&room));
  room.OnCompactionCompleted(nullptr, Merge(rocksdb::Status::IOError("Disk quota exceeded")));
  EXPECT_TRUE(room.IsWaiting("timers"));
  EXPECT_FALSE(Try(&room));
}

TEST(DiskRoomTest, ADiskThatHasRoomOrCannotBeAskedHasRoom) {
  const test::TempDir dir;
  EXPECT_EQ(AskForRoom(dir.path(), 4096), 0);
  EXPECT_EQ(AskForRoom("/proc/none", 4096), 0);
}

}  // namespace
}  // namespace delayd::storage
