#include "daemon/engine/recent_index_rows.h"

#include <string>

#include <gtest/gtest.h>

#include "storage/keys.h"

namespace delayd::engine {
namespace {

class RecentIndexRowsTest : public ::testing::Test {
 protected:
  void Put(uint64_t id, const std::string& value) {
    rows_.Put(storage::IndexKey(JobId{id}), value);
  }

  void Delete(uint64_t id) { rows_.Delete(storage::IndexKey(JobId{id})); }

  std::string Find(uint64_t id) const {
    return std::string(rows_.Find(storage::IndexKey(JobId{id})).value_or("nothing"));
  }

  static constexpr uint64_t kRows = RecentIndexRows::kRows;

  RecentIndexRows rows_;
};

TEST_F(RecentIndexRowsTest, FindsWhatWasPutLast) {
  EXPECT_EQ(Find(7), "nothing");
  Put(7, "first");
  Put(8, "other");
  Put(7, "second");
  EXPECT_EQ(Find(7), "second");
  EXPECT_EQ(Find(8), "other");
  EXPECT_EQ(Find(9), "nothing");
}

TEST_F(RecentIndexRowsTest, NoJobHasTheNumberOfAnEmptyPlace) {
  Put(1, "first");  // its neighbours are empty
  EXPECT_EQ(Find(0), "nothing");
  EXPECT_EQ(Find(2), "nothing");
}

TEST_F(RecentIndexRowsTest, DeletedRowsAreGone) {
  Put(7, "seven");
  Put(8, "eight");
  Delete(7);
  Delete(9);
  Delete(uint64_t{1} << 50);
  EXPECT_EQ(Find(7), "nothing");
  EXPECT_EQ(Find(8), "eight");
}

TEST_F(RecentIndexRowsTest, YoungerJobTakesThePlace) {
  Put(7, "old");
  Put(7 + kRows, "young");
  EXPECT_EQ(Find(7), "nothing");
  EXPECT_EQ(Find(7 + kRows), "young");
  Delete(7);
  EXPECT_EQ(Find(7 + kRows), "young");
}

TEST_F(RecentIndexRowsTest, LongRowIsNotKeptAndNeitherIsTheOneBefore) {
  Put(7, "short");
  Put(7, std::string(15, 'x'));
  EXPECT_EQ(Find(7), std::string(15, 'x'));
  Put(7, std::string(16, 'x'));
  EXPECT_EQ(Find(7), "nothing");
}

}  // namespace
}  // namespace delayd::engine
