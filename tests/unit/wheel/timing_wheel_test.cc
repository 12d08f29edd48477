// The wheel's contract, claim by claim.
#include "wheel/timing_wheel.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/wheel/random_source.h"
#include "wheel/timer_slab.h"

namespace delayd::wheel {
namespace {

constexpr Tick kNow = 1'790'000'000'000;
constexpr Tick kDay = 86'400'000;
constexpr Tick kTenYears = 3652 * kDay;

std::vector<uint64_t> PopIds(TimingWheel& wheel, Tick now, size_t limit = 1000) {
  std::vector<Expired> out(limit);
  out.resize(wheel.PopDue(now, out));
  std::vector<uint64_t> ids;
  for (const Expired& expired : out) {
    ids.push_back(expired.id);
  }
  return ids;
}

using Ids = std::vector<uint64_t>;

TEST(TimingWheelTest, NeverFiresEarlyAtAnyDistance) {
  for (unsigned bits = 0; bits < 63; ++bits) {
    for (const Tick off : {Tick{0}, Tick{1}}) {
      TimingWheel wheel(kNow);
      const Tick due = kNow + (Tick{1} << bits) - off;
      wheel.Add(due, bits);
      if (due > kNow) {
        EXPECT_EQ(PopIds(wheel, due - 1), Ids{}) << bits;
      }
      EXPECT_EQ(PopIds(wheel, due), Ids{bits}) << bits;
      EXPECT_TRUE(wheel.empty());
      wheel.CheckInvariants();
    }
  }
}

TEST(TimingWheelTest, TimerDueNowFiresNow) {
  TimingWheel wheel(kNow);
  wheel.Add(kNow, 1);
  EXPECT_EQ(wheel.NextExpiration(), kNow);
  EXPECT_EQ(PopIds(wheel, kNow), Ids{1});
}

TEST(TimingWheelTest, OverdueTimersFireFirstAndOldestFirst) {
  TimingWheel wheel(kNow);
  wheel.Add(kNow, 1);
  wheel.Add(kNow - 5, 2);
  wheel.Add(kNow - 90, 3);
  wheel.Add(kNow - 5, 4);
  wheel.Add(0, 5);
  EXPECT_EQ(wheel.NextExpiration(), 0U);
  EXPECT_EQ(PopIds(wheel, kNow), (Ids{5, 3, 2, 4, 1}));
}

TEST(TimingWheelTest, ExpiredCarriesTheDueTickItWasGiven) {
  TimingWheel wheel(kNow);
  wheel.Add(kNow - 7, 1);
  wheel.Add(kNow + 7, 2);
  std::array<Expired, 4> out;
  ASSERT_EQ(wheel.PopDue(kNow + 100, out), 2U);
  EXPECT_EQ(out[0], (Expired{1, kNow - 7}));
  EXPECT_EQ(out[1], (Expired{2, kNow + 7}));
}

TEST(TimingWheelTest, EqualTicksFireFirstInFirstOutThoughTheyCameOverDifferentLevels) {
  TimingWheel wheel(0);
  const Tick due = Tick{1} << 40;
  uint64_t id = 0;
  wheel.Add(due, id++);
  for (unsigned bits = 39;; --bits) {
    const Tick now = due - (Tick{1} << bits);
    EXPECT_EQ(PopIds(wheel, now), Ids{});
    wheel.Add(due, id++);
    EXPECT_EQ(PopIds(wheel, now + 1, 1).size(), bits == 0 ? 1U : 0U);
    if (bits == 0) {
      break;
    }
    wheel.Add(due, id++);
    wheel.CheckInvariants();
  }
  Ids expected(id - 1);
  for (uint64_t i = 1; i < id; ++i) {
    expected[i - 1] = i;
  }
  EXPECT_EQ(PopIds(wheel, due), expected);
}

TEST(TimingWheelTest, CancelledEntryNeverFires) {
  TimingWheel wheel(kNow);
  const TimerHandle first = wheel.Add(kNow + 10, 1);
  wheel.Add(kNow + 10, 2);
  EXPECT_TRUE(wheel.Cancel(first));
  EXPECT_EQ(PopIds(wheel, kNow + kDay), Ids{2});
}

TEST(TimingWheelTest, StaleHandlesAreRefusedWhoeverHasTheNodeNow) {
  TimingWheel wheel(kNow);
  const TimerHandle cancelled = wheel.Add(kNow + 10, 1);
  ASSERT_TRUE(wheel.Cancel(cancelled));
  const TimerHandle reused = wheel.Add(kNow + 10, 2);
  EXPECT_NE(reused, cancelled);
  EXPECT_FALSE(wheel.Cancel(cancelled));
  EXPECT_FALSE(wheel.Move(cancelled, kNow + 20));
  EXPECT_EQ(wheel.Due(cancelled), std::nullopt);
  EXPECT_FALSE(wheel.Cancel(kNoTimer));
  EXPECT_FALSE(wheel.Cancel(TimerHandle{UINT64_MAX}));
  EXPECT_EQ(PopIds(wheel, kNow + 10), Ids{2});
  EXPECT_FALSE(wheel.Cancel(reused));
}

TEST(TimingWheelTest, MoveWorksBothWaysAndKeepsTheHandle) {
  TimingWheel wheel(kNow);
  const TimerHandle handle = wheel.Add(kNow + kDay, 1);
  for (const Tick due :
       {kNow + 5, kNow + kTenYears, kNow - 3, kNow + (Tick{1} << 50), kNow + 1000}) {
    EXPECT_TRUE(wheel.Move(handle, due));
    EXPECT_EQ(wheel.Due(handle), due);
    EXPECT_EQ(wheel.Id(handle), 1U);
    wheel.CheckInvariants();
  }
  EXPECT_EQ(PopIds(wheel, kNow + 999), Ids{});
  EXPECT_EQ(PopIds(wheel, kNow + 1000), Ids{1});
  EXPECT_EQ(PopIds(wheel, kNever - 1), Ids{});
}

TEST(TimingWheelTest, MovedTimerGoesBehindTheOthersOfItsTick) {
  TimingWheel wheel(kNow);
  const TimerHandle handle = wheel.Add(kNow + 50, 1);
  wheel.Add(kNow + 50, 2);
  wheel.Move(handle, kNow + 51);
  wheel.Move(handle, kNow + 50);
  EXPECT_EQ(PopIds(wheel, kNow + 50), (Ids{2, 1}));
}

TEST(TimingWheelTest, ShortBatchMeansNothingElseIsDue) {
  TimingWheel wheel(kNow);
  for (uint64_t id = 0; id < 100; ++id) {
    wheel.Add(kNow + id / 10, id);
  }
  Ids all;
  for (;;) {
    const Ids batch = PopIds(wheel, kNow + kDay, 7);
    all.insert(all.end(), batch.begin(), batch.end());
    wheel.CheckInvariants();
    if (batch.size() < 7) {
      break;
    }
  }
  EXPECT_EQ(all.size(), 100U);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
}

TEST(TimingWheelTest, EmptySpanTakesNothing) {
  TimingWheel wheel(kNow);
  wheel.Add(kNow, 1);
  EXPECT_EQ(wheel.PopDue(kNow, {}), 0U);
  EXPECT_EQ(wheel.size(), 1U);
}

TEST(TimingWheelTest, TimeThatGoesBackFiresNothing) {
  TimingWheel wheel(kNow);
  EXPECT_EQ(PopIds(wheel, kNow + 1000), Ids{});
  wheel.Add(kNow + 1000, 1);
  wheel.Add(kNow + 500, 2);
  EXPECT_EQ(PopIds(wheel, kNow + 499), Ids{});
  EXPECT_EQ(PopIds(wheel, kNow + 500), Ids{2});
  EXPECT_EQ(PopIds(wheel, kNow + 999), Ids{});
  EXPECT_EQ(PopIds(wheel, kNow + 1000), Ids{1});
}

TEST(TimingWheelTest, JumpsOfAnyLengthVisitOnlyWhatIsThere) {
  // Were each tick visited, ten years would take minutes; the test's own time is the claim.
  TimingWheel wheel(kNow);
  Tick now = kNow;
  for (const Tick jump : {Tick{60'000}, kDay, kTenYears, Tick{1} << 45}) {
    wheel.Add(now + jump, jump);
    EXPECT_EQ(PopIds(wheel, now + jump - 1), Ids{});
    now += jump;
    EXPECT_EQ(PopIds(wheel, now), Ids{jump});
  }
}

TEST(TimingWheelTest, LoneTimerIsAnnouncedExactlyHoweverFar) {
  for (unsigned bits = 0; bits < 60; ++bits) {
    TimingWheel wheel(kNow);
    const Tick due = kNow + (Tick{1} << bits) + 17;
    wheel.Add(due, 1);
    EXPECT_EQ(wheel.NextExpiration(), due) << bits;
  }
}

TEST(TimingWheelTest, CancelledTimersAreNoReasonToWake) {
  TimingWheel wheel(kNow);
  std::vector<TimerHandle> handles;
  for (uint64_t i = 1; i < 2000; ++i) {
    handles.push_back(wheel.Add(kNow + i * 37, i));
    handles.push_back(wheel.Add(kNow + i * i * i, i));
  }
  wheel.Add(kNow + kTenYears, 7);
  for (const TimerHandle handle : handles) {
    wheel.Cancel(handle);
  }
  EXPECT_EQ(wheel.NextExpiration(), kNow + kTenYears);
  wheel.CheckInvariants();
}

TEST(TimingWheelTest, EmptyWheelNeverExpires) {
  TimingWheel wheel(kNow);
  EXPECT_EQ(wheel.NextExpiration(), kNever);
  wheel.Cancel(wheel.Add(kNow + 5, 1));
  EXPECT_EQ(wheel.NextExpiration(), kNever);
  wheel.Add(kNow + 5, 2);
  PopIds(wheel, kNow + 5);
  EXPECT_EQ(wheel.NextExpiration(), kNever);
}

TEST(TimingWheelTest, TimerDueAtNeverStaysForever) {
  TimingWheel wheel(kNow);
  const TimerHandle handle = wheel.Add(kNever, 1);
  EXPECT_EQ(wheel.NextExpiration(), kNever);
  EXPECT_EQ(PopIds(wheel, kNever - 1), Ids{});
  EXPECT_EQ(wheel.Due(handle), kNever);
  EXPECT_TRUE(wheel.Cancel(handle));
}

TEST(TimingWheelTest, OwnerWhoSleepsUntilNextExpirationMissesNothing) {
  RandomSource random(test::Seed());
  TimingWheel wheel(kNow);
  std::multimap<Tick, uint64_t> expected;
  for (uint64_t id = 0; id < 3000; ++id) {
    const Tick due = kNow + random.Magnitude(36);
    wheel.Add(due, id);
    expected.emplace(due, id);
  }
  uint64_t wakes = 0;
  for (Tick now = wheel.NextExpiration(); now != kNever; now = wheel.NextExpiration()) {
    ++wakes;
    ASSERT_LE(now, expected.begin()->first);
    for (const uint64_t id : PopIds(wheel, now)) {
      ASSERT_EQ(expected.begin()->first, now);
      ASSERT_EQ(expected.begin()->second, id);
      expected.erase(expected.begin());
    }
  }
  EXPECT_TRUE(expected.empty());
  EXPECT_LT(wakes, 3100U);
}

TEST(TimingWheelTest, SleepingOwnerFindsNothingLeftToCascadeWhenASlotBegins) {
  constexpr Tick kSlot = Tick{1} << 22;  // of level 2
  constexpr size_t kTimers = 200'000;
  RandomSource random(test::Seed());
  const Tick first = (kNow / kSlot + 20) * kSlot;
  TimingWheel wheel(kNow);
  for (uint64_t id = 0; id < kTimers; ++id) {
    wheel.Add(first + 1 + random.Below(kSlot - 1), id);
  }
  uint64_t wakes = 0;
  for (Tick now = wheel.NextExpiration(); now <= first; now = wheel.NextExpiration()) {
    ++wakes;
    EXPECT_EQ(PopIds(wheel, now), Ids{});
  }
  EXPECT_LT(wakes, kTimers / 1000);
  for (const TimingWheel::SlotView& slot : wheel.Slots()) {
    // Level 0 is the run of the first slot, when a timer falls into it.
    EXPECT_LT(slot.level, 2U);
  }
  wheel.CheckInvariants();
}

TEST(TimingWheelTest, ClearEmptiesAndMakesHandlesStale) {
  TimingWheel wheel(kNow);
  const TimerHandle near = wheel.Add(kNow + 5, 1);
  const TimerHandle far = wheel.Add(kNow + (Tick{1} << 50), 2);
  const TimerHandle overdue = wheel.Add(kNow - 5, 3);
  wheel.Clear();
  EXPECT_TRUE(wheel.empty());
  wheel.CheckInvariants();
  wheel.Add(kNow + 6, 4);
  for (const TimerHandle handle : {near, far, overdue}) {
    EXPECT_FALSE(wheel.Cancel(handle));
  }
  EXPECT_EQ(PopIds(wheel, kNever - 1), Ids{4});
}

TEST(TimingWheelTest, DrainVisitsEveryLiveTimerOnce) {
  TimingWheel wheel(kNow);
  std::map<uint64_t, Tick> expected;
  for (uint64_t id = 0; id < 500; ++id) {
    const Tick due = kNow - 100 + id * id * id * id;
    const TimerHandle handle = wheel.Add(due, id);
    expected[id] = due;
    if (id % 3 == 0) {
      wheel.Cancel(handle);
      expected.erase(id);
    }
  }
  PopIds(wheel, kNow - 100 + 16);
  expected.erase(1);
  expected.erase(2);
  wheel.Drain([&](uint64_t id, Tick due) {
    EXPECT_EQ(expected.at(id), due);
    expected.erase(id);
  });
  EXPECT_TRUE(expected.empty());
  EXPECT_TRUE(wheel.empty());
  wheel.CheckInvariants();
}

TEST(TimingWheelTest, OneLevelWheelRefusesWhatDoesNotFit) {
  TimingWheel wheel(kNow, {.level_bits = {8}});
  for (Tick step = 0; step < 600; step += 7) {
    const Tick now = kNow + step;
    PopIds(wheel, now);
    EXPECT_EQ(wheel.Add(now + 256, 1), kNoTimer);
    EXPECT_EQ(wheel.Add(now + kTenYears, 1), kNoTimer);
    const TimerHandle fits = wheel.Add(now + 255, 2);
    ASSERT_NE(fits, kNoTimer);
    EXPECT_FALSE(wheel.Move(fits, now + 256));
    EXPECT_EQ(wheel.Due(fits), now + 255);
    wheel.CheckInvariants();
  }
  EXPECT_EQ(wheel.size(), 256U / 7 + 1);
}

TEST(TimingWheelTest, ApplyDoesWhatSingleCallsDo) {
  RandomSource random(test::Seed());
  TimingWheel single(kNow);
  TimingWheel batched(kNow);
  std::vector<TimerHandle> handles(1, kNoTimer);
  Tick now = kNow;
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<TimerCommand> commands(random.Between(1, 80));
    std::vector<TimerHandle> expected;
    for (TimerCommand& command : commands) {
      command.kind = static_cast<TimerCommand::Kind>(random.Below(3));
      command.due = now + random.Magnitude(20);
      command.id = random.Next();
      command.handle = handles[random.Below(handles.size())];
      TimerHandle after = kNoTimer;
      if (command.kind == TimerCommand::Kind::kAdd) {
        after = single.Add(command.due, command.id);
      } else if (command.kind == TimerCommand::Kind::kCancel) {
        after = single.Cancel(command.handle) ? command.handle : kNoTimer;
      } else {
        after = single.Move(command.handle, command.due) ? command.handle : kNoTimer;
      }
      expected.push_back(after);
    }
    batched.Apply(commands);
    for (size_t i = 0; i < commands.size(); ++i) {
      ASSERT_EQ(commands[i].handle, expected[i]);
      handles.push_back(commands[i].handle);
    }
    now += random.Magnitude(12);
    ASSERT_EQ(PopIds(single, now), PopIds(batched, now));
  }
  batched.CheckInvariants();
}

TEST(TimingWheelTest, MemoryStaysBoundedUnderAnyCancelPattern) {
  constexpr size_t kLive = 20'000;
  constexpr size_t kBytesPerLiveMax = 52;  // twice the 26 bytes of a wheel without cancels
  constexpr size_t kFixedBytes = 1 << 20;  // slot tables and one chunk for each slot in use
  RandomSource random(test::Seed());
  for (const unsigned delay_bits : {12U, 22U, 30U}) {
    TimingWheel wheel(kNow);
    std::vector<TimerHandle> handles;
    for (size_t i = 0; i < kLive; ++i) {
      handles.push_back(wheel.Add(kNow + 1 + random.Below(Tick{1} << delay_bits), i));
    }
    for (size_t i = 0; i < Scaled(1'000'000); ++i) {
      const size_t at = random.OneIn(2) ? random.Below(kLive) : i % 10;
      const Tick due = kNow + 1 + random.Below(Tick{1} << delay_bits);
      if (random.OneIn(2)) {
        ASSERT_TRUE(wheel.Move(handles[at], due));
      } else {
        ASSERT_TRUE(wheel.Cancel(handles[at]));
        handles[at] = wheel.Add(due, i);
      }
    }
    EXPECT_LE(wheel.memory_bytes(), kLive * kBytesPerLiveMax + 2 * kFixedBytes) << delay_bits;
    wheel.CheckInvariants();
  }
}

TEST(TimingWheelTest, MovingOneTimerForeverNeedsNoMemory) {
  TimingWheel wheel(kNow);
  const TimerHandle handle = wheel.Add(kNow + 1, 1);
  for (size_t i = 0; i < Scaled(1'000'000); ++i) {
    ASSERT_TRUE(wheel.Move(handle, kNow + 1 + i % 3000));
  }
  EXPECT_LE(wheel.memory_bytes(), size_t{2} << 20);
  wheel.CheckInvariants();
}

TEST(TimingWheelTest, EntryWhoseVersionCameRoundDoesNotFireItsTimerEarly) {
  constexpr int kVersions = 256;
  for (const Tick delay : {Tick{100}, Tick{5000}}) {  // popped from level 0, from a run
    TimingWheel wheel(kNow);
    const TimerHandle handle = wheel.Add(kNow + delay, 1);
    for (int i = 1; i < kVersions; ++i) {
      ASSERT_TRUE(wheel.Move(handle, kNow + delay + 1));
    }
    // The first entry now agrees with the node in version and in its 24 bits of the due tick.
    const Tick due = kNow + delay + (Tick{1} << 24);
    ASSERT_TRUE(wheel.Move(handle, due));
    EXPECT_EQ(PopIds(wheel, due - 1), Ids{});
    EXPECT_EQ(PopIds(wheel, due), Ids{1});
  }
}

TEST(TimingWheelTest, TickHalfPoppedSurvivesASweepOfItsSlot) {
  constexpr uint64_t kTimers = 2000;
  for (size_t popped_first = 1; popped_first < 64; popped_first += 7) {
    TimingWheel wheel(kNow);
    std::vector<TimerHandle> handles;
    for (uint64_t id = 0; id < kTimers; ++id) {
      handles.push_back(wheel.Add(kNow, id));
    }
    Ids all = PopIds(wheel, kNow, popped_first);
    // The last thousand move within the tick until their old entries have to be swept.
    for (int round = 0; round < 8; ++round) {
      for (uint64_t id = kTimers / 2; id < kTimers; ++id) {
        ASSERT_TRUE(wheel.Move(handles[id], kNow));
      }
      wheel.CheckInvariants();
    }
    const Ids rest = PopIds(wheel, kNow, kTimers);
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(all.size(), kTimers);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  }
}

TEST(TimingWheelTest, WheelCanBeMovedElsewhere) {
  TimingWheel wheel(kNow);
  const TimerHandle handle = wheel.Add(kNow + 5, 1);
  TimingWheel other = std::move(wheel);
  EXPECT_EQ(other.Due(handle), kNow + 5);
  EXPECT_EQ(PopIds(other, kNow + 5), Ids{1});
}

TEST(TimingWheelTest, AHandleIsFoundAgainByItsIndexWhileTheTimerLives) {
  TimingWheel wheel(kNow);
  const TimerHandle handle = wheel.Add(kNow + 10, 1);
  EXPECT_EQ(wheel.HandleAt(IndexOf(handle)), handle);
  EXPECT_EQ(wheel.HandleAt(IndexOf(handle) + 1), kNoTimer) << "there never was one";
  ASSERT_TRUE(wheel.Cancel(handle));
  EXPECT_EQ(wheel.HandleAt(IndexOf(handle)), kNoTimer);
}

TEST(TimingWheelTest, HandlesThatWereNeverGivenOutAreRefused) {
  TimingWheel wheel(kNow);
  wheel.Add(kNow + 10, 1);
  const TimerHandle beyond = MakeHandle(4711, 1);
  EXPECT_FALSE(wheel.Cancel(beyond));
  EXPECT_FALSE(wheel.Move(beyond, kNow));
  EXPECT_EQ(wheel.Due(beyond), std::nullopt);
  EXPECT_EQ(wheel.Id(beyond), std::nullopt);
  std::vector<TimerCommand> commands(40, {.kind = TimerCommand::Kind::kCancel, .handle = beyond});
  wheel.Apply(commands);
  for (const TimerCommand& command : commands) {
    EXPECT_EQ(command.handle, kNoTimer);
  }
  EXPECT_EQ(wheel.size(), 1U);
}

// The node of a timer that is gone has the generation of the next one already.
TEST(TimingWheelTest, TheHandleOfATimerToComeIsRefused) {
  TimingWheel wheel(kNow);
  ASSERT_TRUE(wheel.Cancel(wheel.Add(kNow + 10, 1)));
  TimingWheel other(kNow);
  ASSERT_TRUE(other.Cancel(other.Add(kNow + 10, 1)));
  const TimerHandle next = other.Add(kNow + 10, 2);
  EXPECT_FALSE(wheel.Cancel(next));
  EXPECT_EQ(wheel.Id(next), std::nullopt);
}

TEST(TimingWheelTest, ApplyTakesWhatIsOverdueAndWhatDoesNotFitFarAhead) {
  TimingWheel wheel(kNow, {.level_bits = {10}});
  std::vector<TimerCommand> commands;
  for (uint64_t i = 0; i < 40; ++i) {
    commands.push_back({.kind = TimerCommand::Kind::kAdd,
                        .due = i % 2 == 0 ? kNow - 1 - i : kNow + kDay,
                        .id = i});
  }
  wheel.Apply(commands);
  EXPECT_EQ(wheel.size(), 20U);
  EXPECT_EQ(PopIds(wheel, kNow, 1), Ids{38}) << "due longest";
  EXPECT_EQ(commands[1].handle, kNoTimer);
}

TEST(TimingWheelTest, APictureShowsTheRunOfTheSlotThatIsServed) {
  TimingWheel wheel(0);
  constexpr Tick kTurn = 1024;
  for (Tick due = 4 * kTurn; due < 5 * kTurn; ++due) {
    wheel.Add(due, due);
  }
  ASSERT_EQ(wheel.Slots().size(), 1U);
  EXPECT_EQ(wheel.Slots()[0].level, 1U);
  EXPECT_EQ(PopIds(wheel, 4 * kTurn + 476).size(), 477U);
  const auto slots = wheel.Slots();
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0].level, 0U);
  EXPECT_EQ(slots[0].first_tick, 4 * kTurn);
  EXPECT_EQ(slots[0].entries, kTurn - 477U);
}

}  // namespace
}  // namespace delayd::wheel
