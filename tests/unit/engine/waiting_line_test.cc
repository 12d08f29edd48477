#include "daemon/engine/waiting_line.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace delayd::engine {
namespace {

constexpr size_t kInLine = 10'000;

// A line, who of it waits, and how often it was asked that.
class WaitingLineTest : public ::testing::Test {
 protected:
  void Join(RequestId request) {
    line_.Join(request);
    waiting_.insert(request);
  }

  void Leave(RequestId request, int places = 1) {
    waiting_.erase(request);
    for (int i = 0; i < places; ++i) {
      line_.Left([this](RequestId other) {
        ++asked_;
        return waiting_.contains(other);
      });
    }
  }

  WaitingLine line_;
  std::set<RequestId> waiting_;
  size_t asked_ = 0;
};

// The first who waits is the least: they come in this order.
TEST_F(WaitingLineTest, TheFirstIsWhoHasWaitedLongestWhoeverHasLeft) {
  std::vector<RequestId> order(kInLine);
  std::iota(order.begin(), order.end(), 1);
  std::ranges::for_each(order, [this](RequestId request) { Join(request); });
  std::ranges::shuffle(order, std::mt19937_64(1));
  for (const RequestId request : order) {
    ASSERT_EQ(line_.front(), *waiting_.begin());
    Leave(request);
    ASSERT_EQ(line_.size(), waiting_.size());
    ASSERT_EQ(line_.empty(), waiting_.empty());
  }
}

// Each was looked for from the front, and those behind closed up.
TEST_F(WaitingLineTest, P10WhoLeavesFromTheMiddleOfALongLineCostsNoMoreThanFromAShortOne) {
  std::vector<RequestId> order(kInLine);
  std::iota(order.begin(), order.end(), 1);
  std::ranges::for_each(order, [this](RequestId request) { Join(request); });
  std::ranges::shuffle(order, std::mt19937_64(1));
  std::ranges::for_each(order, [this](RequestId request) { Leave(request); });
  EXPECT_LE(asked_, 6 * kInLine);
}

TEST_F(WaitingLineTest, ALineThatOthersJoinAndLeaveBehindOneWhoStaysDoesNotGrow) {
  Join(1);
  for (RequestId request = 2; request < kInLine; ++request) {
    Join(request);
    Leave(request);
    ASSERT_LE(asked_, 6 * request);
    ASSERT_LE(line_.places(), 2U);
  }
  EXPECT_EQ(line_.front(), 1U);
  EXPECT_EQ(line_.size(), 1U);
}

TEST_F(WaitingLineTest, WhoIsThereTwiceLeavesTwice) {
  Join(1);
  Join(2);
  Join(2);
  Join(3);
  Leave(2, 2);
  Leave(1);
  EXPECT_EQ(line_.front(), 3U);
  Leave(3);
  EXPECT_TRUE(line_.empty());
}

}  // namespace
}  // namespace delayd::engine
