// No wake-up is lost, whoever comes first. Threads wait for conditions; nobody sleeps for a time.
#include "wheel/waiter.h"

#include <poll.h>
#include <time.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/wheel/random_source.h"
#include "wheel/delay_queue.h"

namespace delayd::wheel {
namespace {

template <typename Waiter>
class WaiterTest : public ::testing::Test {};

using Waiters = ::testing::Types<ConditionWaiter, TimerFdWaiter>;
TYPED_TEST_SUITE(WaiterTest, Waiters);

TYPED_TEST(WaiterTest, TickThatHasBegunEndsTheWaitAtOnce) {
  TypeParam waiter;
  EXPECT_EQ(waiter.WaitUntil(0), WakeReason::kDue);
  EXPECT_EQ(waiter.WaitUntil(1), WakeReason::kDue);
}

TYPED_TEST(WaiterTest, WaitEndsWhenItsTickBegins) {
  timespec time = {};
  ASSERT_EQ(::clock_gettime(CLOCK_MONOTONIC, &time), 0);
  const auto now_ms = static_cast<Tick>(time.tv_sec * 1000 + time.tv_nsec / 1'000'000);
  TypeParam waiter;
  EXPECT_EQ(waiter.WaitUntil(now_ms + 3), WakeReason::kDue);
  ASSERT_EQ(::clock_gettime(CLOCK_MONOTONIC, &time), 0);
  EXPECT_GE(static_cast<Tick>(time.tv_sec * 1000 + time.tv_nsec / 1'000'000), now_ms + 3);
}

TYPED_TEST(WaiterTest, ArrivalBeforeTheWaitIsRemembered) {
  TypeParam waiter;
  waiter.WaitUntil(0);
  waiter.Arrive(5);
  EXPECT_EQ(waiter.WaitUntil(kNever), WakeReason::kArrival);
}

TYPED_TEST(WaiterTest, ArrivalBeforeTheWaitEndsItThoughFarAwayItself) {
  TypeParam waiter;
  waiter.WaitUntil(0);
  waiter.Arrive(kNever - 2);
  EXPECT_EQ(waiter.WaitUntil(kNever - 1), WakeReason::kArrival);
}

TYPED_TEST(WaiterTest, EarlierArrivalEndsTheWait) {
  TypeParam waiter;
  std::thread other([&] { waiter.Arrive(kNever - 2); });
  EXPECT_EQ(waiter.WaitUntil(kNever - 1), WakeReason::kArrival);
  other.join();
}

TYPED_TEST(WaiterTest, LaterArrivalDoesNotEndTheWait) {
  TypeParam waiter;
  std::thread other([&] {
    waiter.Arrive(kNever - 1);
    waiter.Arrive(kNever - 1);
    waiter.Wake();
  });
  // Only Wake is earlier than this; the wait ends through it or finds that it came before.
  EXPECT_EQ(waiter.WaitUntil(kNever - 1), WakeReason::kArrival);
  other.join();
}

// Producers hand over elements due at once or never; were one wake-up lost, the owner would sleep
// for good.
TYPED_TEST(WaiterTest, NoWakeUpIsLostAmongManyProducers) {
  const uint64_t per_producer = Scaled(40'000);
  constexpr uint64_t kProducers = 3;
  TypeParam waiter;
  std::mutex mutex;
  std::vector<Tick> inbox;
  std::vector<std::thread> producers;
  for (uint64_t seed = 0; seed < kProducers; ++seed) {
    producers.emplace_back([&, seed] {
      RandomSource random(test::Seed() + seed);
      for (uint64_t i = 0; i < per_producer; ++i) {
        const Tick due = random.Below(3);
        {
          const std::lock_guard lock(mutex);
          inbox.push_back(due);
        }
        waiter.Arrive(due);
      }
    });
  }
  DelayQueue<int> queue;
  uint64_t taken = 0;
  while (taken < kProducers * per_producer) {
    {
      const std::lock_guard lock(mutex);
      for (const Tick due : inbox) {
        queue.Offer(0, due);
      }
      inbox.clear();
    }
    while (queue.Take(3)) {
      ++taken;
    }
    if (taken < kProducers * per_producer) {
      waiter.WaitUntil(queue.NextExpiration());
    }
  }
  for (std::thread& producer : producers) {
    producer.join();
  }
}

TEST(TimerFdWaiterTest, DescriptorIsReadableForAnEventLoop) {
  TimerFdWaiter waiter(CLOCK_BOOTTIME);
  const auto readable = [&] {
    pollfd descriptor = {.fd = waiter.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&descriptor, 1, 0) == 1;
  };
  waiter.BeginTurn();
  waiter.Arm(kNever);
  EXPECT_FALSE(readable());
  waiter.Arrive(kNever);
  EXPECT_FALSE(readable());
  waiter.Arrive(kNever - 1);
  EXPECT_TRUE(readable());
  waiter.BeginTurn();
  EXPECT_FALSE(readable());
  waiter.Arrive(1);
  EXPECT_FALSE(readable()) << "during a turn nobody has to be woken";
  waiter.Arm(kNever);
  EXPECT_TRUE(readable());
}

}  // namespace
}  // namespace delayd::wheel
