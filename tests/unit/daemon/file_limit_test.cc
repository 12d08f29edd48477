#include "daemon/file_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

namespace delayd {
namespace {

using ::testing::HasSubstr;

class FileLimitTest : public ::testing::Test {
 protected:
  FileLimitTest() { EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0); }

  ~FileLimitTest() override { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

  void SetUp() override {
    if (before_.rlim_max < 2024) {
      GTEST_SKIP() << "the hard limit is " << before_.rlim_max;
    }
  }

  void SetSoft(rlim_t files) const {
    const rlimit limit{.rlim_cur = files, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

  static rlim_t Soft() {
    rlimit limit{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
  }

  rlim_t Hard() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

// A store of 100 GiB has 1,600 files, whatever the number of connections.
TEST_F(FileLimitTest, ItIsRaisedAsFarAsPermitted) {
  SetSoft(256);
  RaiseFileLimit();
  EXPECT_EQ(Soft(), Hard());
  RaiseFileLimit();
  EXPECT_EQ(Soft(), Hard());
}

TEST_F(FileLimitTest, UnderALowOneTheStoreKeepsItsPart) {
  SetSoft(2024);
  EXPECT_EQ(ConnectionsThatFit(1000), 1000U);
  SetSoft(1100);
  EXPECT_EQ(ConnectionsThatFit(1000), 550U) << "one half each";
  EXPECT_EQ(ConnectionsThatFit(100), 100U);
  SetSoft(140);
  EXPECT_EQ(ConnectionsThatFit(1000), 12U) << "an empty store needs 128";
  SetSoft(100);
  EXPECT_EQ(ConnectionsThatFit(1000), 1U);
}

TEST_F(FileLimitTest, WithoutFilesForTheStoreNothingStarts) {
  SetSoft(64);
  EXPECT_TRUE(CheckFileLimit().ok());
  SetSoft(63);
  EXPECT_THAT(CheckFileLimit().message(), HasSubstr("the limit of open files is 63, and"));
}

}  // namespace
}  // namespace delayd
