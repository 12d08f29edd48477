// DelayQueue, BlockingDelayQueue and the callbacks over the wheel.
#include "wheel/delay_queue.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/wheel/naive_timers.h"
#include "tests/unit/wheel/random_source.h"
#include "wheel/blocking_delay_queue.h"
#include "wheel/callback_timers.h"

namespace delayd::wheel {
namespace {

TEST(DelayQueueTest, GivesNothingBeforeItsTime) {
  DelayQueue<std::string> queue;
  queue.Offer("b", 20);
  queue.Offer("a", 10);
  EXPECT_EQ(queue.NextExpiration(), 10U);
  EXPECT_EQ(queue.Take(9), std::nullopt);
  EXPECT_EQ(queue.Take(10), "a");
  EXPECT_EQ(queue.Take(19), std::nullopt);
  EXPECT_EQ(queue.Take(25), "b");
  EXPECT_EQ(queue.NextExpiration(), kNever);
}

TEST(DelayQueueTest, StaleHandlesAreRefused) {
  DelayQueue<std::unique_ptr<int>> queue;
  const TimerHandle gone = queue.Offer(std::make_unique<int>(1), 10);
  EXPECT_TRUE(queue.Remove(gone));
  const TimerHandle next = queue.Offer(std::make_unique<int>(2), 10);
  EXPECT_FALSE(queue.Remove(gone));
  EXPECT_FALSE(queue.Update(gone, 3));
  EXPECT_TRUE(queue.Update(next, 3));
  EXPECT_EQ(**queue.Take(3), 2);
  EXPECT_FALSE(queue.Remove(next));
  EXPECT_FALSE(queue.Remove(kNoTimer));
}

TEST(DelayQueueTest, SaysWhatAnOrderedMapSays) {
  RandomSource random(test::Seed());
  SCOPED_TRACE("DELAYD_SEED=" + std::to_string(test::Seed()));
  DelayQueue<uint64_t> queue;
  NaiveTimers naive;
  std::vector<TimerHandle> handles;
  Tick now = 1000;
  for (uint64_t i = 0; i < Scaled(1'000'000); ++i) {
    const uint64_t dice = random.Below(100);
    const Tick due = now + random.Below(100) - Tick{20};
    const size_t at =
        handles.empty() ? 0
                        : handles.size() - 1 - random.Below(std::min<size_t>(100, handles.size()));
    if (handles.empty() || dice < 40) {
      naive.Add(due, handles.size());
      handles.push_back(queue.Offer(handles.size(), due));
    } else if (dice < 55) {
      ASSERT_EQ(queue.Remove(handles[at]), naive.Cancel(at));
    } else if (dice < 70) {
      ASSERT_EQ(queue.Update(handles[at], due), naive.Move(at, due));
    } else {
      now += random.OneIn(3) ? 1U : 0U;
      const auto expected = naive.PopDue(now, 1);
      const auto taken = queue.Take(now);
      ASSERT_EQ(taken.has_value(), !expected.empty());
      ASSERT_TRUE(!taken || *taken == expected[0].id);
    }
    ASSERT_EQ(queue.NextExpiration(), naive.Next());
  }
}

TEST(BlockingDelayQueueTest, SleeperTakesWhatIsDueAlready) {
  BlockingDelayQueue<int> queue;
  queue.Offer(7, 1);
  EXPECT_EQ(queue.Take(), 7);
}

TEST(BlockingDelayQueueTest, EarlierArrivalWakesTheSleeper) {
  BlockingDelayQueue<int> queue;
  queue.Offer(1, kNever - 1);
  int taken = 0;
  std::thread sleeper([&] { taken = *queue.Take(); });
  queue.Offer(2, 1);
  sleeper.join();
  EXPECT_EQ(taken, 2);
  EXPECT_EQ(queue.size(), 1U);
}

TEST(BlockingDelayQueueTest, EveryElementIsTakenOnceByOneOfManySleepers) {
  constexpr int kElements = 4000;
  BlockingDelayQueue<int> queue;
  std::vector<std::vector<int>> taken(4);
  std::vector<std::thread> sleepers;
  std::mutex mutex;
  std::condition_variable all_taken;
  int count = 0;
  for (auto& mine : taken) {
    sleepers.emplace_back([&] {
      while (auto value = queue.Take()) {
        mine.push_back(*value);
        const std::lock_guard lock(mutex);
        if (++count == kElements) {
          all_taken.notify_one();
        }
      }
    });
  }
  for (int i = 0; i < kElements; ++i) {
    queue.Offer(i, static_cast<Tick>(kElements - i));
  }
  {
    std::unique_lock lock(mutex);
    all_taken.wait(lock, [&] { return count == kElements; });
  }
  queue.Close();
  std::vector<bool> seen(kElements);
  for (size_t i = 0; i < sleepers.size(); ++i) {
    sleepers[i].join();
    for (const int value : taken[i]) {
      EXPECT_FALSE(seen[static_cast<size_t>(value)]);
      seen[static_cast<size_t>(value)] = true;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kElements);
}

TEST(BlockingDelayQueueTest, CloseEndsTheWait) {
  BlockingDelayQueue<int> queue;
  queue.Offer(1, kNever - 1);
  std::thread sleeper([&] { EXPECT_EQ(queue.Take(), std::nullopt); });
  queue.Close();
  sleeper.join();
  EXPECT_EQ(queue.Take(), std::nullopt);
}

TEST(CallbackTimersTest, RunsAfterItsDelayAndOnce) {
  CallbackTimers timers(100);
  int runs = 0;
  timers.RunAfter(100, 50, [&] { ++runs; });
  EXPECT_EQ(timers.NextExpiration(), 150U);
  EXPECT_EQ(timers.RunDue(149), 0U);
  EXPECT_EQ(timers.RunDue(150), 1U);
  EXPECT_EQ(timers.RunDue(1000), 0U);
  EXPECT_EQ(runs, 1);
}

TEST(CallbackTimersTest, StoppedTimerDoesNotRunEvenIfStoppedByOneDueWithIt) {
  CallbackTimers timers;
  std::string log;
  TimerHandle second = kNoTimer;
  timers.RunAfter(0, 5, [&] {
    log += "first ";
    EXPECT_TRUE(timers.Stop(second));
    EXPECT_FALSE(timers.Stop(second));
  });
  second = timers.RunAfter(0, 5, [&] { log += "second "; });
  EXPECT_EQ(timers.RunDue(5), 1U);
  EXPECT_EQ(log, "first ");
}

TEST(CallbackTimersTest, ResetRunsAtTheNewTimeOnly) {
  CallbackTimers timers;
  int runs = 0;
  const TimerHandle handle = timers.RunAfter(0, 10, [&] { ++runs; });
  EXPECT_TRUE(timers.Reset(handle, 8, 10));
  EXPECT_EQ(timers.RunDue(17), 0U);
  EXPECT_EQ(timers.RunDue(18), 1U);
  EXPECT_FALSE(timers.Reset(handle, 18, 10));
  EXPECT_EQ(runs, 1);
}

TEST(CallbackTimersTest, CallbackMayStartItselfAgainWithoutEnd) {
  CallbackTimers timers;
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    timers.RunAfter(7, 0, again);
  };
  timers.RunAfter(0, 7, again);
  EXPECT_EQ(timers.RunDue(7), 1U);
  EXPECT_EQ(timers.RunDue(7), 1U);
  EXPECT_EQ(runs, 2);
}

TEST(DelayQueueTest, HandlesThatWereNeverGivenOutAreRefused) {
  DelayQueue<int> queue;
  queue.Offer(1, 10);
  EXPECT_FALSE(queue.Remove(TimerHandle{4711}));
  EXPECT_FALSE(queue.Update(TimerHandle{4711}, 20));
  EXPECT_EQ(queue.size(), 1U);
}

}  // namespace
}  // namespace delayd::wheel
