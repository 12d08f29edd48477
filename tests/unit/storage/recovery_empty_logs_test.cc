// A store whose newest log holds nothing, or is not there: what it had reached the tables and BATCH
// tell.
#include <string>

#include "storage/batch_floor.h"
#include "tests/unit/storage/recovery_fixture.h"

namespace delayd::storage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using RecoveryEmptyLogsTest = RecoveryTest;

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

}  // namespace
}  // namespace delayd::storage
