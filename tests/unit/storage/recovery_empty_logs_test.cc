// A store whose newest log holds nothing, or is not there: what it had reached the tables and BATCH
// tell.
#include <optional>
#include <string>

#include "storage/batch_floor.h"
#include "storage/log_order.h"
#include "tests/unit/storage/recovery_fixture.h"

namespace delayd::storage {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecoveryEmptyLogsTest : public RecoveryTest {
 protected:
  // The older of two logs, of which the MANIFEST knows that it was durable when RocksDB went on.
  std::string NotedLog() {
    Commit(1, 20);
    const std::string log = SplitLog();
    std::string note;
    AppendVarint(&note, std::stoull(fs::path(log).stem()));
    note += '\x02';
    AppendVarint(&note, fs::file_size(log));
    note += '\x01';
    WriteFile(Manifest(),
              ReadFile(Manifest()) +
                  Record(std::string("\x87\x40") + static_cast<char>(note.size()) + note));
    return log;
  }
};

// A start that is refused leaves it its place.
TEST_F(RecoveryEmptyLogsTest, P9ANewestLogThatWasEmptiedMayBePutBack) {
  for (const bool has_tables : {false, true}) {
    for (const size_t zeroes : {size_t{0}, size_t{4096}}) {
      fs::remove_all(path());
      if (has_tables) {
        Commit(1, 3);
      }
      Commit(has_tables ? 4 : 1, 2 * kBatchFloorStep);
      const std::string log = Log();
      const std::string whole = ReadFile(log);
      WriteFile(log, std::string(zeroes, '\0'));
      const Status refused = Open().status();
      EXPECT_EQ(refused.reason(), "damaged_store");
      EXPECT_THAT(refused.message(), HasSubstr("so its newest log was cut or lost"));
      EXPECT_THAT(refused.message(), HasSubstr("--accept-loss"));
      WriteFile(log, whole);
      const auto store = Open();
      ASSERT_TRUE(store.ok()) << has_tables << zeroes << store.status().message();
      EXPECT_EQ(Jobs(**store).size(), 2 * kBatchFloorStep) << has_tables << zeroes;
    }
  }
}

// The first batch of a store's life is its schema number.
TEST_F(RecoveryEmptyLogsTest, P9AStoreThatHasLostAllThereWasOpensAtTheOperatorsWord) {
  const auto damage = [this](int how) {
    if (how == 0) {
      WriteFile(Log(), Flipped(ReadFile(Log()), 20));
    } else if (how == 1) {
      WriteFile(Log(), "");
    } else {
      fs::remove(Log());
    }
  };
  for (const int how : {0, 1, 2}) {
    fs::remove_all(path());
    Commit(1, 2 * kBatchFloorStep);
    damage(how);
    EXPECT_THAT(Open().status().message(), HasSubstr("--accept-loss")) << how;
    {
      const auto store = Open(true);
      ASSERT_TRUE(store.ok()) << how << store.status().message();
      EXPECT_THAT(Jobs(**store), ElementsAre());
      EXPECT_EQ(report_.batch_number, 0U);
      EXPECT_GT(report_.batch_number_floor, 0U);
    }
    ASSERT_TRUE(EndRecovery(path()).ok());
    EXPECT_TRUE(Open().ok()) << how;
  }
}

TEST_F(RecoveryEmptyLogsTest, P9ALostSchemaNumberSaysWhatToDoAlsoWithoutAFloor) {
  Commit(1, 3);
  fs::remove(Log());
  fs::remove(path() + "/BATCH");
  EXPECT_THAT(Open().status().message(),
              AllOf(HasSubstr("its schema number"), HasSubstr("--accept-loss")));
}

// RocksDB replays what stands behind it into tables that lack what it held.
TEST_F(RecoveryEmptyLogsTest, P9AnOlderLogThatIsGoneOrCutIsALossAndIsTold) {
  for (const bool removed : {true, false}) {
    fs::remove_all(path());
    const std::string log = NotedLog();
    const std::string whole = ReadFile(log);
    const size_t behind = ScanLog(ReadFile(newer_log())).records;
    if (removed) {
      fs::remove(log);
    } else {
      WriteFile(log, whole.substr(0, *ScanLog(Flipped(whole, whole.size() / 2)).damaged_at));
    }
    const size_t left = removed ? 0 : fs::file_size(log);
    const std::string told = fs::path(log).filename().string() + " has " + std::to_string(left) +
                             " of the " + std::to_string(whole.size()) + " acknowledged bytes";
    EXPECT_THAT(Open().status().message(), AllOf(HasSubstr(told), HasSubstr("--accept-loss")));
    RecoveryReport shown;
    ASSERT_TRUE(RecoverLogs(path(), LogRepair::kShowLoss, &shown).ok());
    EXPECT_EQ(shown.lost_batches, behind);
    EXPECT_EQ(shown.lost_jobs.size(), behind);
    EXPECT_THAT(shown.Lines(),
                AllOf(Contains(HasSubstr(told)), Contains(HasSubstr("would be lost"))));
    {
      const auto store = Open(true);
      ASSERT_TRUE(store.ok()) << store.status().message();
      EXPECT_EQ(report_.lost_batches, behind);
      EXPECT_LT(Jobs(**store).size(), 20 - behind);
      EXPECT_THAT(report_.Lines(), Contains(HasSubstr("lost by the operator's word")));
      ASSERT_TRUE((*store)->Close().ok());
    }
    ASSERT_TRUE(EndRecovery(path()).ok());
    const Status again = Open().status();
    EXPECT_TRUE(again.ok()) << removed << again.message();
  }
}

TEST_F(RecoveryEmptyLogsTest, P9WhereAllLogsAreGoneTheNotedOneIsALossAllTheSame) {
  fs::remove(NotedLog());
  fs::remove(newer_log());
  fs::remove(path() + "/BATCH");
  EXPECT_THAT(Open().status().message(), HasSubstr("0 of the"));
  EXPECT_TRUE(Open(true).ok());
  EXPECT_EQ(report_.lost_batches, 1U);
}

TEST_F(RecoveryEmptyLogsTest, AnOlderLogThatIsWholeIsNoLoss) {
  (void)NotedLog();
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(Jobs(**store).size(), 20U);
  EXPECT_THAT(report_.Lines(), ElementsAre());
}

// As RocksDB logs a batch of so many changes, without the changes.
std::string HeadOfBatch(char first, char count) {
  std::string head(12, '\0');
  head[0] = first;
  head[8] = count;
  return head;
}

TEST(LogOrderTest, ARecordWithoutChangesIsInOrderUnderTheNumberOfTheLast) {
  LogOrder order;
  order.SetTablesEnd(6);
  for (const std::string& record : {HeadOfBatch(7, 3), HeadOfBatch(9, 0), HeadOfBatch(10, 1)}) {
    order.Add(record);
  }
  EXPECT_EQ(order.wrong(), std::nullopt);
  EXPECT_TRUE(order.meets_tables());
}

TEST(LogOrderTest, TheFirstThatDoesNotFollowIsNamed) {
  LogOrder order;
  for (const std::string& record : {HeadOfBatch(7, 3), HeadOfBatch(20, 1), HeadOfBatch(30, 1)}) {
    order.Add(record);
  }
  EXPECT_EQ(order.wrong(), "goes on with change 20 where change 10 is due");
}

}  // namespace
}  // namespace delayd::storage
