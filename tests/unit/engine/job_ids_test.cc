#include "daemon/engine/job_ids.h"

#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "base/limits.h"

namespace delayd::engine {
namespace {

TEST(JobIdsTest, TheFirstOfAnEmptyStoreIsOne) {
  JobIds ids;
  ids.Restore(0);
  EXPECT_EQ(ids.Next().value(), JobId{1});
  EXPECT_EQ(ids.Next().value(), JobId{2});
}

TEST(JobIdsTest, TheMarkIsWrittenOnceABlockAndIsAheadOfAllThatWereGivenOut) {
  JobIds ids;
  ids.Restore(0);
  EXPECT_EQ(ids.TakeMark(), std::nullopt);
  std::optional<uint64_t> mark;
  for (uint64_t i = 0; i < 2 * limits::kJobIdBlock; ++i) {
    const JobId id = ids.Next().value();
    const std::optional<uint64_t> taken = ids.TakeMark();
    EXPECT_EQ(taken.has_value(), i % limits::kJobIdBlock == 0);
    mark = taken ? taken : mark;
    ASSERT_LT(ToInt(id), *mark);
  }
}

// What is left of a block at a crash is lost.
TEST(JobIdsTest, AStartGoesOnFromTheMark) {
  JobIds ids;
  ids.Restore(4097);
  EXPECT_EQ(ids.TakeMark(), std::nullopt);
  EXPECT_EQ(ids.Next().value(), JobId{4097});
}

TEST(JobIdsTest, WhenAllHaveBeenUsedThatIsSaid) {
  JobIds ids;
  ids.Restore(limits::kJobIdMax);
  EXPECT_EQ(ids.Next().value(), JobId{limits::kJobIdMax});
  EXPECT_EQ(ids.Next().status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace delayd::engine
