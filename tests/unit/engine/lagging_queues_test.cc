#include "daemon/engine/lagging_queues.h"

#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace delayd::engine {
namespace {

Frontier PlaceAt(int64_t ms) {
  return {WallTime(Millis(ms)), JobId{}};
}

class LaggingQueuesTest : public ::testing::Test {
 protected:
  void Hold(Queue* queue, int by) {
    queue->held += static_cast<uint64_t>(by);
    lagging_.NoteHeld(queue, by);
  }

  void MakeReady(Queue* queue) {
    ready_ = queue->ready.Add({.id = JobId{1}});
    lagging_.NoteReady(queue);
  }

  void TakeReady(Queue* queue) {
    queue->ready.Remove(ready_);
    lagging_.NoteNotReady(queue);
  }

  LaggingQueues lagging_;
  Queue one_;
  Queue two_;
  Queue three_;
  uint32_t ready_ = 0;
};

TEST_F(LaggingQueuesTest, TheFirstFrontierIsKnownAsTheyMove) {
  EXPECT_EQ(lagging_.first(), kNothingFar);
  lagging_.Lag(&one_, PlaceAt(100));
  lagging_.Lag(&two_, PlaceAt(200));
  EXPECT_EQ(lagging_.first(), WallTime(Millis(100)));
  lagging_.Lag(&one_, PlaceAt(300));
  EXPECT_EQ(lagging_.first(), WallTime(Millis(200)));
  EXPECT_EQ(lagging_.size(), 2U);
  lagging_.CatchUp(&two_);
  EXPECT_EQ(lagging_.first(), WallTime(Millis(300)));
  EXPECT_FALSE(two_.frontier.has_value());
}

TEST_F(LaggingQueuesTest, OnlyOneWithoutAReadyJobIsHungry) {
  lagging_.Lag(&one_, PlaceAt(100));
  lagging_.Lag(&two_, PlaceAt(200));
  EXPECT_EQ(lagging_.first_hungry(), WallTime(Millis(100)));
  MakeReady(&one_);
  EXPECT_EQ(lagging_.first_hungry(), WallTime(Millis(200)));
  lagging_.Lag(&one_, PlaceAt(50));
  EXPECT_EQ(lagging_.first_hungry(), WallTime(Millis(200)));
  TakeReady(&one_);
  EXPECT_EQ(lagging_.first_hungry(), WallTime(Millis(50)));
  lagging_.CatchUp(&one_);
  lagging_.CatchUp(&two_);
  EXPECT_EQ(lagging_.first_hungry(), kNothingFar);
}

TEST_F(LaggingQueuesTest, WhatTheyHoldIsCountedFromWhenTheyLagUntilTheyHaveCaughtUp) {
  Hold(&one_, 5);
  EXPECT_EQ(lagging_.held(), 0U);
  lagging_.Lag(&one_, PlaceAt(100));
  lagging_.Lag(&two_, PlaceAt(100));
  Hold(&two_, 2);
  EXPECT_EQ(lagging_.held(), 7U);
  EXPECT_EQ(lagging_.least_held(), 2U);
  Hold(&one_, -4);
  EXPECT_EQ(lagging_.held(), 3U);
  EXPECT_EQ(lagging_.least_held(), 1U);
  lagging_.CatchUp(&one_);
  EXPECT_EQ(lagging_.held(), 2U);
  EXPECT_EQ(lagging_.least_held(), 2U);
}

TEST_F(LaggingQueuesTest, TheyTakeTurns) {
  for (Queue* queue : {&one_, &two_, &three_}) {
    lagging_.Lag(queue, PlaceAt(100));
  }
  std::multiset<Queue*> seen;
  for (int i = 0; i < 6; ++i) {
    seen.insert(&lagging_.Next());
  }
  EXPECT_EQ(seen, (std::multiset<Queue*>{&one_, &one_, &two_, &two_, &three_, &three_}));
  lagging_.CatchUp(&three_);
  lagging_.CatchUp(&one_);
  EXPECT_EQ(&lagging_.Next(), &two_);
}

TEST_F(LaggingQueuesTest, WhatIsAtTheCommonFrontierOrBehindItHasCaughtUp) {
  lagging_.Lag(&one_, PlaceAt(100));
  lagging_.Lag(&two_, PlaceAt(200));
  lagging_.Lag(&three_, PlaceAt(300));
  lagging_.CatchUpFrom(PlaceAt(200));
  EXPECT_EQ(lagging_.size(), 1U);
  EXPECT_TRUE(one_.frontier.has_value());
  EXPECT_FALSE(two_.frontier.has_value() || three_.frontier.has_value());
}

}  // namespace
}  // namespace delayd::engine
