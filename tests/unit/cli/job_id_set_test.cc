#include "cli/job_id_set.h"

#include <gtest/gtest.h>

namespace delayd::cli {
namespace {

TEST(JobIdSetTest, KnowsWhatItWasGivenAndNothingBesides) {
  JobIdSet ids;
  for (const uint64_t id : {uint64_t{63}, uint64_t{64}, uint64_t{10'000'000'000}, UINT64_MAX}) {
    EXPECT_FALSE(ids.Contains(JobId{id})) << id;
    EXPECT_TRUE(ids.Insert(JobId{id})) << id;
    EXPECT_FALSE(ids.Insert(JobId{id})) << id;
    EXPECT_TRUE(ids.Contains(JobId{id})) << id;
  }
  for (const uint64_t id : {uint64_t{0}, uint64_t{62}, uint64_t{65}, UINT64_MAX - 1}) {
    EXPECT_FALSE(ids.Contains(JobId{id})) << id;
  }
}

}  // namespace
}  // namespace delayd::cli
