#include "daemon/engine/user_jobs.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace delayd::engine {
namespace {

using Counts = std::vector<std::pair<std::string, uint64_t>>;

Counts Changed(UserJobs* jobs) {
  Counts changed;
  jobs->TakeChanged(
      [&](const std::string& user, uint64_t count) { changed.emplace_back(user, count); });
  return changed;
}

TEST(UserJobsTest, ACountIsWrittenOnceWhateverItDidSinceTheLastTime) {
  UserJobs jobs;
  jobs.Gain("shop");
  jobs.Gain("shop");
  jobs.Gain("mail");
  jobs.Lose("mail");
  EXPECT_EQ(Changed(&jobs), (Counts{{"mail", 0}, {"shop", 2}}));
  EXPECT_EQ(Changed(&jobs), Counts());
}

TEST(UserJobsTest, WhoHasNoJobIsNotThereAnyMore) {
  UserJobs jobs;
  jobs.Restore("shop", 1);
  jobs.Restore("mail", 3);
  jobs.Restore("nothing", 0);
  jobs.Lose("shop");
  Counts all;
  jobs.ForEach([&](const std::string& user, uint64_t count) { all.emplace_back(user, count); });
  EXPECT_EQ(all, (Counts{{"mail", 3}}));
  EXPECT_EQ(jobs.Of("shop"), 0);
}

// Their records have no user; and a count that is too small must not wrap.
TEST(UserJobsTest, NobodysJobsAreNotCounted) {
  UserJobs jobs;
  jobs.Gain("");
  jobs.Lose("");
  jobs.Lose("unheard of");
  EXPECT_EQ(jobs.Of(""), 0);
  EXPECT_EQ(jobs.Of("unheard of"), 0);
  EXPECT_EQ(Changed(&jobs), Counts());
}

}  // namespace
}  // namespace delayd::engine
