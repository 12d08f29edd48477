// Rows in a block of a table file that cannot be read: what has to do with others goes on.
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "storage/keys.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;
using storage::Table;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A store whose rows of these keys are in damaged blocks.
class DamagedBlocks final : public storage::JobReader {
 public:
  explicit DamagedBlocks(const storage::JobReader* store) : store_(store) {}

  Status Get(Table table, std::string_view key, std::string* value) const override {
    return rows.contains({table, std::string(key)}) ? Damaged() : store_->Get(table, key, value);
  }

  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    Status damaged;
    const auto look = [&](std::string_view key, std::string_view value) {
      damaged = rows.contains({table, std::string(key)}) ? Damaged() : OkStatus();
      return damaged.ok() && visit(key, value);
    };
    const Status scanned = store_->Scan(table, from, to, look);
    return damaged.ok() ? scanned : damaged;
  }

  std::set<std::pair<Table, std::string>> rows;

 private:
  static Status Damaged() { return DataLoss("block checksum mismatch"); }

  const storage::JobReader* store_;
};

// Three finished jobs with keys, which are forgotten after an hour.
class DamagedTrimTest : public ::testing::Test {
 protected:
  DamagedTrimTest() {
    for (const char* key : {"a", "b", "c"}) {
      const JobId id = harness_.EnqueueOk(Keyed(key, 1h)).id;
      ids_.push_back(id);
      finished_.push_back(harness_.now().wall);
      EXPECT_TRUE(harness_.Call(Cancel{id}).status.ok());
      harness_.Wait(1s);
    }
  }

  std::string DoneKeyOf(size_t job) { return storage::DoneKey(finished_[job], ids_[job]); }

  // Until nothing is left to do; how many incidents that made.
  size_t Trim() {
    auto loaded = Engine::Load(options_, store_, harness_.now());
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    const std::unique_ptr<Engine> engine = std::move(loaded).value();
    for (int step = 0; step < 10; ++step) {
      harness_.clock().Advance(10min);
      while (engine->Advance(harness_.now())) {
      }
      while (const auto sealed = engine->Seal(harness_.now())) {
        EXPECT_TRUE(harness_.store().Commit(*sealed->batch).ok());
        engine->Committed(sealed->sequence);
      }
    }
    EXPECT_TRUE(engine->fatal().ok()) << engine->fatal().message();
    return engine->TakeIncidents().size();
  }

  std::vector<std::string> Left(Table table) {
    std::vector<std::string> keys;
    EXPECT_TRUE(harness_.store()
                    .Scan(table,
                          std::string(1, '\0'),
                          {},
                          [&](std::string_view key, std::string_view) {
                            keys.emplace_back(key);
                            return true;
                          })
                    .ok());
    return keys;
  }

  EngineOptions options_{.boot_id = kBootId, .defaults = {.key_retention = 1h}};
  EngineHarness harness_{options_};
  DamagedBlocks store_{&harness_.store()};
  std::vector<JobId> ids_;
  std::vector<WallTime> finished_;
};

TEST_F(DamagedTrimTest, P9AKeyThatCannotBeReadKeepsNoFinishedJob) {
  ASSERT_THAT(Left(Table::kKeys), SizeIs(3));
  store_.rows.emplace(Table::kKeys, Left(Table::kKeys)[0]);
  EXPECT_EQ(Trim(), 1U);
  EXPECT_THAT(Left(Table::kDone), IsEmpty());
  EXPECT_THAT(Left(Table::kKeys), SizeIs(1)) << "the one that cannot be read";
}

TEST_F(DamagedTrimTest, P9WhatLiesBeforeADamagedBlockIsForgotten) {
  store_.rows.emplace(Table::kDone, DoneKeyOf(1));
  EXPECT_GT(Trim(), 0U);
  EXPECT_EQ(Left(Table::kDone), (std::vector<std::string>{DoneKeyOf(1), DoneKeyOf(2)}));
}

// The line in the log tells which job is held back.
TEST(DamagedBlocksTest, P9AJobWhosePayloadCannotBeReadIsNamed) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(0s, std::string(9000, 'b')));
  DamagedBlocks store(&harness.store());
  store.rows.emplace(Table::kBig, storage::IndexKey(job.id));
  const auto engine = Engine::Load({.boot_id = kBootId}, store, harness.now());
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  while ((*engine)->Advance(harness.now())) {
  }
  (*engine)->Execute(1, Lease{.queues = {"default"}, .count = 1}, harness.now());
  const std::vector<Status> incidents = (*engine)->TakeIncidents();
  ASSERT_THAT(incidents, SizeIs(1));
  EXPECT_EQ(incidents[0].message(),
            "job " + std::to_string(ToInt(job.id)) + ": block checksum mismatch");
}

}  // namespace
}  // namespace delayd::engine
