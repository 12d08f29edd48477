// Memory that is full, and a wall clock that was set back under what it is full of.
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

void EnqueueOrders(EngineHarness* harness, int jobs, WallTime first) {
  for (int i = 0; i < jobs; ++i) {
    harness->Send(Enqueue{{{.queue = "orders", .due = DueAt{first + Millis(i)}}}});
  }
}

// A page that is loaded after the clock was set back takes the frontier back, and leaves jobs
// behind it in memory that no frontier on disk tells of. When room is made they go, and must come
// again.
TEST(WaitingForAClockTest, P3JobsDroppedBehindAFrontierThatWentBackWithTheClockComeAgain) {
  EngineHarness harness({.horizon = 10min, .memory_jobs_max = 40});
  const WallTime begin = harness.now().wall;
  const auto send = [&](const std::string& queue, int jobs, WallTime first) {
    for (int i = 0; i < jobs; ++i) {
      harness.Send(
          Enqueue{{{.queue = queue, .due = DueAt{first + Millis(i)}, .key = std::to_string(i)}}});
    }
  };
  send("small", 3, begin + 1h);
  send("large", 60, begin + 1h + 10ms);
  harness.Turn();
  harness.clock().Advance(56min);
  while (harness.engine().Advance(harness.now())) {  // loads as many as there is room for
  }
  harness.clock().StepWall(-1h);
  ASSERT_TRUE(harness.Call(Cancel{KeyRef{"large", "0"}}).status.ok());  // room for a page
  send("busy", 12, begin + 1min);
  harness.clock().StepWall(54min);
  harness.Turn();
  harness.Wait(10min + 1s);
  EXPECT_EQ(WorkOff(&harness, "small"), 3U);
  EXPECT_EQ(WorkOff(&harness, "busy"), 12U);
  EXPECT_EQ(WorkOff(&harness, "large"), 59U);
}

// What memory is full of was due soon before the clock was set back.
TEST(WaitingForAClockTest, P3WhatWaitsForAClockThatWasSetBackKeepsNoDueJobOnDisk) {
  EngineHarness harness({.horizon = 10min, .memory_jobs_max = 10});
  const WallTime begin = harness.now().wall;
  EnqueueOrders(&harness, 30, begin + 4min);
  harness.EnqueueOk(ForQueue("orders", 5min, "relative"));
  harness.EnqueueOk(ForQueue("others", 5min, "relative"));
  harness.Turn();
  harness.clock().StepWall(-3h);
  harness.Wait(5min + 1ms);
  EXPECT_EQ(WorkOff(&harness, "others"), 1U);
  EXPECT_EQ(WorkOff(&harness, "orders"), 1U);
  harness.Wait(3h);
  EXPECT_EQ(WorkOff(&harness, "orders"), 30U);
}

TEST(WaitingForAClockTest, WhatWaitsForAClockThatWasSetBackWakesNobodyUntilItIsDue) {
  EngineHarness harness({.horizon = 10min, .memory_jobs_max = 10});
  const WallTime begin = harness.now().wall;
  harness.EnqueueOk(
      ForQueue("others", 1h));  // by its key the others may be due, though they are not
  EnqueueOrders(&harness, 30, begin + 1min);
  harness.Turn();
  harness.clock().StepWall(-3h);
  harness.Wait(2min);
  int wakes = 0;
  for (const BootTime end = harness.now().boot + 1h; harness.now().boot < end; ++wakes) {
    harness.Wait(harness.engine().UntilNextEvent(harness.now()).value_or(1h));
    ASSERT_LT(wakes, 100);
  }
  EXPECT_EQ(WorkOff(&harness, "others"), 1U);
}

// The wheel of the wall clock does not go back by a little: it waits.
TEST(WaitingForAClockTest, P3ABacklogOnDiskDoesNotWaitForAClockThatWasSetBackByALittle) {
  EngineHarness harness({.horizon = 10min, .memory_jobs_max = 10});
  const WallTime begin = harness.now().wall;
  EnqueueOrders(&harness, 50, begin);
  harness.Turn();
  harness.Wait(1min);
  harness.clock().StepWall(-30s);
  EXPECT_EQ(WorkOff(&harness, "orders"), 50U);
}

// The mark stays before what was left on disk: a start finds it.
TEST(WaitingForAClockTest, P3WhatWaitsOnDiskForItsClockIsThereAfterAStart) {
  EngineHarness harness({.horizon = 10min, .memory_jobs_max = 10});
  const WallTime begin = harness.now().wall;
  EnqueueOrders(&harness, 30, begin + 4min);
  harness.EnqueueOk(ForQueue("orders", 5min));
  harness.Turn();
  harness.clock().StepWall(-3h);
  harness.Wait(5min + 1ms);
  EXPECT_EQ(WorkOff(&harness, "orders"), 1U);
  harness.EnqueueOk(ForQueue("others", 0s));
  harness.Turn();
  harness.clock().StepWall(3h + 1min);
  harness.Turn();
  EXPECT_EQ(WorkOff(&harness, "others"), 1U);
  harness.Restart();
  EXPECT_EQ(WorkOff(&harness, "orders"), 30U);
}

}  // namespace
}  // namespace delayd::engine
