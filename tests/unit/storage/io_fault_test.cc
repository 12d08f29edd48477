// One life of a store with every I/O call failed once: whatever fails, the process stops there, and
// the next start finds every acknowledged batch, and of the unanswered one all or nothing.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

using test::FaultFileSystem;
using test::IoCall;
using test::IoFault;

using Rows = std::map<std::string, std::string>;

class IoFaultLife {
 public:
  // Enqueues, moves and deletes jobs over two starts; ends at the first error.
  void Run() {
    if (Start() && Work(1, 12) && End() && Start() && Work(13, 18)) {
      (void)End();
    }
    store_.reset();
  }

  // The next start after the fault is gone.
  void ExpectTruth(const std::string& what) {
    store_.reset();
    fs->ClearFaults();
    auto opened = Open();
    ASSERT_TRUE(opened.ok()) << what << ": " << opened.status().message();
    Rows found;
    for (const Table table : {Table::kTimers, Table::kIndex}) {
      const Status status =
          (*opened)->Scan(table, std::string(1, '\0'), {}, [&](auto key, auto value) {
            return found.emplace(key, value).second;
          });
      ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    }
    EXPECT_TRUE(found == acknowledged_ || (in_doubt_ && found == *in_doubt_))
        << what << ": " << found.size() << " rows, acknowledged were " << acknowledged_.size();
    // And it works again.
    Batch batch;
    batch.Put(Table::kQueues, "orders", "record");
    EXPECT_TRUE((*opened)->Commit(batch).ok()) << what;
  }

  std::shared_ptr<FaultFileSystem> fs = std::make_shared<FaultFileSystem>();

 private:
  StatusOr<std::unique_ptr<JobStore>> Open() {
    return OpenRocksJobStore({.path = dir_.Sub("data"),
                              .env = env_.get(),
                              .wal_bytes_max = 8192,
                              .manifest_bytes_max = 2048,
                              .removal_step_bytes = 4096});
  }

  bool Start() {
    auto opened = Open();
    if (opened.ok()) {
      store_ = std::move(opened).value();
    }
    return opened.ok();
  }

  bool End() {
    const bool ok = store_->Close().ok();
    store_.reset();
    return ok;
  }

  bool Work(uint64_t first, uint64_t last) {
    for (uint64_t number = first; number <= last; ++number) {
      Rows after = acknowledged_;
      Batch batch;
      const auto put = [&](Table table, const std::string& key, const std::string& value) {
        batch.Put(table, key, value);
        after[key] = value;
      };
      for (uint64_t job = 0; job < 3; ++job) {
        put(Table::kTimers, Timer(number, job), std::string(700, static_cast<char>('a' + number)));
        put(Table::kIndex, IndexKey(JobId{number * 10 + job}), "place");
      }
      if (number > 2) {
        batch.Delete(Table::kTimers, Timer(number - 2, 0));
        after.erase(Timer(number - 2, 0));
      }
      batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
      in_doubt_ = after;
      if (!store_->Commit(batch).ok()) {
        EXPECT_FALSE(store_->Commit(batch).ok()) << "a failed store goes on";
        return false;
      }
      acknowledged_ = std::move(after);
      in_doubt_.reset();
    }
    return true;
  }

  static std::string Timer(uint64_t number, uint64_t job) {
    return TimerKey(WallFromMillis(static_cast<int64_t>(number)), JobId{number * 10 + job});
  }

  test::TempDir dir_;
  std::unique_ptr<rocksdb::Env> env_ = test::NewFaultEnv(fs);
  std::unique_ptr<JobStore> store_;
  Rows acknowledged_;
  std::optional<Rows> in_doubt_;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// DELAYD_FAULT_STRIDE takes every so many calls only, from one that the seed chooses: for builds
// that are slow. DELAYD_FAULT_CALL begins at a certain call.
// Fails call after call, until a life ends before its fault comes up.
void FailEveryCall(IoFault fault, std::optional<IoCall> only) {
  uint64_t points = 0;
  const uint64_t stride = FromEnvironment("DELAYD_FAULT_STRIDE", 1);
  for (uint64_t n = FromEnvironment("DELAYD_FAULT_CALL", test::Seed() % stride);; n += stride) {
    IoFaultLife life;
    if (only.has_value()) {
      life.fs->FailCall(*only, n, fault);
    } else {
      life.fs->FailCall(n, fault);
    }
    life.Run();
    const std::string struck = life.fs->struck();
    if (struck.empty()) {
      break;
    }
    ++points;
    if (fault == IoFault::kPowerCut) {
      life.fs->LoseUnsynced(
          {.tail = static_cast<test::PowerLoss::Tail>(n % 3), .seed = test::Seed() + n});
    }
    life.ExpectTruth("call " + std::to_string(n) + ", " + struck);
    if (::testing::Test::HasFailure()) {
      return;
    }
  }
  std::printf("%llu fault points\n", static_cast<unsigned long long>(points));  // NOLINT
  EXPECT_GT(points * stride, 10U);
}

TEST(IoFaultTest, LifeWithoutFaultsKeepsEverything) {
  IoFaultLife life;
  life.Run();
  life.ExpectTruth("no fault");
}

TEST(IoFaultTest, P1EveryCallFailedOnce) {
  FailEveryCall(IoFault::kEio, std::nullopt);
}

TEST(IoFaultTest, P1PowerCutAtEveryCall) {
  FailEveryCall(IoFault::kPowerCut, std::nullopt);
}

TEST(IoFaultTest, P1DiskFullAtEveryAppend) {
  FailEveryCall(IoFault::kEnospc, IoCall::kAppend);
}

TEST(IoFaultTest, P1EveryAppendArrivesHalf) {
  FailEveryCall(IoFault::kShortWrite, IoCall::kAppend);
}

// It writes on after an error, which its own assertions are against.
TEST(IoFaultTest, RocksDbsOwnLogMayFail) {
  std::string struck;
  for (uint64_t n = 0; !struck.ends_with("/LOG"); ++n) {
    IoFaultLife life;
    life.fs->CountInfoLog();
    life.fs->FailCall(IoCall::kAppend, n, IoFault::kEnospc);
    life.Run();
    struck = life.fs->struck();
    ASSERT_FALSE(struck.empty()) << "nothing is appended to it";
    life.ExpectTruth(struck);
  }
}

TEST(IoFaultTest, P1DiskFullAtEveryNewFile) {
  FailEveryCall(IoFault::kEnospc, IoCall::kCreate);
}

}  // namespace
}  // namespace delayd::storage
