// Random operations on a wheel and on an ordered map side by side; both must say the same at every
// step.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/wheel/naive_timers.h"
#include "tests/unit/wheel/random_source.h"
#include "wheel/timing_wheel.h"

namespace delayd::wheel {
namespace {

struct Shape {
  std::string name;
  std::vector<unsigned> level_bits;
  Tick start = 0;
  unsigned delay_bits = 20;   // delays of up to this many bits, every magnitude equally likely
  unsigned advance_bits = 8;  // steps of time likewise
  uint64_t live_target = 200;
  uint64_t overdue_one_in = 50;
  uint64_t operations = 400'000;
};

class WheelPropertyTest : public ::testing::TestWithParam<Shape> {
 protected:
  struct Known {
    TimerHandle handle;
    uint64_t id;
  };

  WheelPropertyTest()
      : random_(test::Seed()),
        now_(GetParam().start),
        wheel_(GetParam().start, {.level_bits = GetParam().level_bits}) {}

  Tick RandomDue() {
    if (random_.OneIn(GetParam().overdue_one_in)) {
      return now_ - std::min(now_, random_.Magnitude(12));
    }
    const Tick delay = random_.Magnitude(GetParam().delay_bits);
    return delay > kNever - 1 - now_ ? kNever - 1 : now_ + delay;
  }

  void Add() {
    const Tick due = RandomDue();
    const uint64_t id = next_id_++;
    const TimerHandle handle = wheel_.Add(due, id);
    ASSERT_NE(handle, kNoTimer);
    naive_.Add(due, id);
    known_.push_back({handle, id});
  }

  // A handle that may be live, fired or cancelled; half of the dead ones are forgotten.
  Known Pick() {
    const size_t at = random_.Below(known_.size());
    const Known known = known_[at];
    if (!naive_.Contains(known.id) && random_.OneIn(2)) {
      known_[at] = known_.back();
      known_.pop_back();
    }
    return known;
  }

  void Cancel() {
    const Known known = Pick();
    ASSERT_EQ(wheel_.Cancel(known.handle), naive_.Cancel(known.id));
  }

  void Move() {
    const Known known = Pick();
    const Tick due = RandomDue();
    ASSERT_EQ(wheel_.Move(known.handle, due), naive_.Move(known.id, due));
  }

  void Look() {
    const Known known = Pick();
    const auto due = wheel_.Due(known.handle);
    ASSERT_EQ(due.has_value(), naive_.Contains(known.id));
    if (due) {
      ASSERT_EQ(*due, naive_.DueOf(known.id));
      ASSERT_EQ(wheel_.Id(known.handle), known.id);
      ASSERT_EQ(wheel_.HandleAt(IndexOf(known.handle)), known.handle);
    }
  }

  void Pop() {
    const Tick next = wheel_.NextExpiration();
    ASSERT_LE(next, naive_.Next());
    ASSERT_EQ(next == kNever, naive_.size() == 0);
    const Tick step = random_.Magnitude(GetParam().advance_bits);
    if (random_.OneIn(3)) {
      now_ =
          std::max(now_, next == kNever ? now_ : next);  // as an owner does who sleeps until then
    } else if (random_.OneIn(20)) {
      now_ -= std::min(now_, step);  // the clock was set back
    } else {
      now_ = step > kNever - 1 - now_ ? kNever - 1 : now_ + step;
    }
    std::vector<Expired> out(random_.Between(1, random_.OneIn(4) ? 300 : 5));
    const size_t count = wheel_.PopDue(now_, out);
    const size_t limit = out.size();
    out.resize(count);
    ASSERT_EQ(out, naive_.PopDue(now_, limit)) << "now " << now_;
  }

  RandomSource random_;
  Tick now_;
  TimingWheel wheel_;
  NaiveTimers naive_;
  std::vector<Known> known_;
  uint64_t next_id_ = 1;
};

TEST_P(WheelPropertyTest, SaysWhatAnOrderedMapSays) {
  SCOPED_TRACE("DELAYD_SEED=" + std::to_string(test::Seed()));
  const uint64_t operations = Scaled(GetParam().operations);
  for (uint64_t i = 0; i < operations && !HasFatalFailure(); ++i) {
    const uint64_t dice = random_.Below(100);
    if (known_.empty() || (dice < 40 && naive_.size() < GetParam().live_target)) {
      Add();
    } else if (dice < 60) {
      Cancel();
    } else if (dice < 75) {
      Move();
    } else if (dice < 80) {
      Look();
    } else {
      Pop();
    }
    ASSERT_EQ(wheel_.size(), naive_.size());
    if (random_.OneIn(500)) {
      wheel_.CheckInvariants();
    }
    if (random_.OneIn(50'000)) {
      wheel_.Clear();
      naive_.Clear();
    }
  }
}

constexpr Tick kNow = 1'790'000'000'000;  // milliseconds in 2026

INSTANTIATE_TEST_SUITE_P(Shapes,
                         WheelPropertyTest,
                         ::testing::Values(Shape{.name = "Default",
                                                 .level_bits = {10, 12, 12, 12, 12, 6},
                                                 .start = kNow,
                                                 .delay_bits = 22},
                                           Shape{.name = "DefaultAnyDistance",
                                                 .level_bits = {10, 12, 12, 12, 12, 6},
                                                 .start = kNow,
                                                 .delay_bits = 63,
                                                 .advance_bits = 45},
                                           Shape{.name = "FromTickZero",
                                                 .level_bits = {10, 12, 12, 12, 12, 6},
                                                 .delay_bits = 44,
                                                 .advance_bits = 34},
                                           Shape{.name = "BeforeARollover",
                                                 .level_bits = {10, 12, 12, 12, 12, 6},
                                                 .start = (Tick{1} << 41) - 3000,
                                                 .delay_bits = 24,
                                                 .advance_bits = 10},
                                           Shape{.name = "NearTheEndOfTime",
                                                 .level_bits = {10, 12, 12, 12, 12, 6},
                                                 .start = kNever - (Tick{1} << 46),
                                                 .delay_bits = 50,
                                                 .advance_bits = 32},
                                           Shape{.name = "TinyLevels",
                                                 .level_bits = std::vector<unsigned>(32, 2),
                                                 .start = 1000,
                                                 .delay_bits = 14,
                                                 .advance_bits = 5},
                                           Shape{.name = "OneBitLevels",
                                                 .level_bits = std::vector<unsigned>(64, 1),
                                                 .start = 12345,
                                                 .delay_bits = 10,
                                                 .advance_bits = 4,
                                                 .live_target = 30},
                                           Shape{.name = "ManyInFewTicks",
                                                 .level_bits = {3, 4, 5, 16, 16, 16, 4},
                                                 .start = 77,
                                                 .delay_bits = 7,
                                                 .advance_bits = 3,
                                                 .live_target = 5000},
                                           Shape{.name = "MostlyOverdue",
                                                 .level_bits = {10, 12, 12, 12, 12, 6},
                                                 .start = kNow,
                                                 .delay_bits = 12,
                                                 .advance_bits = 10,
                                                 .overdue_one_in = 2},
                                           Shape{.name = "Crowded",
                                                 .level_bits = {4, 4, 8, 16, 16, 16},
                                                 .start = kNow,
                                                 .delay_bits = 18,
                                                 .advance_bits = 6,
                                                 .live_target = 20'000,
                                                 .operations = 600'000}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace delayd::wheel
