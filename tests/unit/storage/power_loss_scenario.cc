#include "power_loss_scenario.h"

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <rocksdb/env.h>

#include "storage/keys.h"
#include "storage/rocks_job_store.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

using test::FaultFileSystem;
using test::IoFault;
using test::PowerLoss;

constexpr int kBatchesMax = 400;
constexpr uint64_t kCallsMax = 1200;
constexpr size_t kFirstBatch = 0;

// Row r of batch b, in two tables, so that batches cross column families.
std::string RowKey(size_t batch, size_t row) {
  return TimerKey(WallFromMillis(static_cast<int64_t>(batch)), JobId{row + 1});
}

Table RowTable(size_t row) {
  return row % 2 == 0 ? Table::kTimers : Table::kIndex;
}

struct Written {
  std::vector<std::string> values;  // by row
  bool acknowledged = false;
};

class Life {
 public:
  Life(uint64_t seed, PowerLoss::Tail tail)
      : random_(seed),
        tail_(tail),
        fs_(std::make_shared<FaultFileSystem>()),
        env_(test::NewFaultEnv(fs_)) {}

  PowerLossResult Run() {
    {
      auto opened = Open();
      if (!opened.ok()) {
        return {.reopened = opened.status(), .report = "the first open failed"};
      }
      CommitUntilThePowerGoes(opened->get());
    }
    PowerLossResult result;
    result.bytes_lost = fs_->LoseUnsynced({.tail = tail_, .seed = random_()});
    auto reopened = Open();
    if (!reopened.ok()) {
      result.reopened = reopened.status();
      return result;
    }
    Compare(**reopened, &result);
    return result;
  }

 private:
  StatusOr<std::unique_ptr<JobStore>> Open() {
    // A small log and a store that rests at once, so that the power also goes while memtables are
    // flushed, logs are switched, and the old ones are removed a piece at a time.
    return OpenRocksJobStore({.path = dir_.Sub("data"),
                              .env = env_.get(),
                              .wal_bytes_max = 65536,
                              .manifest_bytes_max = 2048,
                              .removal_step_bytes = 4096,
                              .rest_bytes_min = 32768,
                              .rest_period = std::chrono::milliseconds(0)});
  }

  void CommitUntilThePowerGoes(JobStore* store) {
    fs_->FailCall(random_() % kCallsMax, IoFault::kPowerCut);
    for (int i = 0; i < kBatchesMax; ++i) {
      Written written;
      Batch batch;
      const size_t rows = 1 + random_() % 20;
      for (size_t row = 0; row < rows; ++row) {
        written.values.emplace_back(1 + random_() % 400, static_cast<char>('a' + random_() % 26));
        batch.Put(RowTable(row), RowKey(written_.size(), row), written.values.back());
      }
      const bool go_on = store->Commit(batch, [&] { written.acknowledged = true; }).ok();
      written_.push_back(std::move(written));
      if (!go_on) {
        return;
      }
    }
    fs_->CutPower();
  }

  void Compare(const JobStore& store, PowerLossResult* result) const {
    std::map<std::string, std::string> found;
    for (const Table table : {Table::kTimers, Table::kIndex}) {
      const Status status =
          store.Scan(table, RowKey(kFirstBatch, 0), {}, [&](auto key, auto value) {
            return found.emplace(key, value).second;
          });
      if (!status.ok()) {
        result->reopened = status;
        return;
      }
    }
    result->phantoms = found.size();
    for (size_t batch = 0; batch < written_.size(); ++batch) {
      const Written& written = written_[batch];
      size_t there = 0;
      for (size_t row = 0; row < written.values.size(); ++row) {
        const auto it = found.find(RowKey(batch, row));
        there += it != found.end() && it->second == written.values[row] ? 1U : 0U;
        result->phantoms -= it != found.end() ? 1U : 0U;
      }
      result->acknowledged += written.acknowledged ? 1U : 0U;
      if (there != written.values.size() && written.acknowledged) {
        result->missing += written.values.size() - there;
        result->report = "batch " + std::to_string(batch) + " of " +
                         std::to_string(written_.size()) + " has " + std::to_string(there) +
                         " of " + std::to_string(written.values.size()) + " rows";
      }
      result->torn += there != 0 && there != written.values.size() ? 1U : 0U;
    }
  }

  test::TempDir dir_;
  std::mt19937_64 random_;
  PowerLoss::Tail tail_;
  std::shared_ptr<FaultFileSystem> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  std::vector<Written> written_;
};

}  // namespace

PowerLossResult LosePower(uint64_t seed, PowerLoss::Tail tail) {
  return Life(seed, tail).Run();
}

}  // namespace delayd::storage
