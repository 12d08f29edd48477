// simulate: watch a small wheel turn. It has three levels of four slots (1, 4 and 16 ticks wide),
// five timers, and prints its non-empty slots at every tick at which something happens.
//
//   simulate                the story told in wheel/timing_wheel.h
//   simulate 3 9 40 1000    timers due at these ticks instead
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "wheel/timing_wheel.h"

namespace {

using delayd::wheel::Expired;
using delayd::wheel::kNever;
using delayd::wheel::Tick;
using delayd::wheel::TimingWheel;

using Slots = std::vector<TimingWheel::SlotView>;

std::string Name(uint64_t id) {
  return id < 26 ? std::string(1, static_cast<char>('A' + id)) : "#" + std::to_string(id);
}

std::string Row(const Slots& slots, unsigned level) {
  std::string row;
  for (const TimingWheel::SlotView& slot : slots) {
    if (slot.level == level) {
      const Tick last = slot.first_tick + slot.width - 1;
      row += "  [" + std::to_string(slot.first_tick) +
             (slot.width > 1 ? ".." + std::to_string(last) : "") + "]x" +
             std::to_string(slot.entries);
    }
  }
  return row.empty() ? "  -" : row;
}

// The slots if they are others than those printed last.
void PrintSlots(Tick now, const TimingWheel& wheel, std::string* printed) {
  const Slots slots = wheel.Slots();
  const std::string rows = Row(slots, 0) + Row(slots, 1) + Row(slots, 2);
  if (rows == *printed) {
    return;
  }
  *printed = rows;
  unsigned top = 2;
  for (const TimingWheel::SlotView& slot : slots) {
    top = slot.level > top ? slot.level : top;
  }
  std::printf("tick %-6llu", static_cast<unsigned long long>(now));  // NOLINT(google-runtime-int)
  for (unsigned level = 0; level <= top; ++level) {
    std::printf(
        "%s level %u%s\n", level == 0 ? "" : "           ", level, Row(slots, level).c_str());
  }
}

void RunUntilEmpty(TimingWheel& wheel) {
  Tick now = 0;
  std::string printed;
  PrintSlots(now, wheel, &printed);
  while (wheel.NextExpiration() != kNever) {
    ++now;  // tick by tick, although the wheel asks only for the ticks NextExpiration names
    std::array<Expired, 8> due;
    const size_t count = wheel.PopDue(now, due);
    PrintSlots(now, wheel, &printed);
    for (size_t i = 0; i < count; ++i) {
      std::printf("            %s fires at %llu\n",
                  Name(due[i].id).c_str(),
                  static_cast<unsigned long long>(due[i].due));  // NOLINT(google-runtime-int)
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Tick> due_ticks = {1, 5, 8, 10, 37};
  if (argc > 1) {
    due_ticks.clear();
    for (int i = 1; i < argc; ++i) {
      due_ticks.push_back(std::strtoull(argv[i], nullptr, 10));
    }
  }
  TimingWheel wheel(0, {.level_bits = {2, 2, 2, 8, 16, 16, 16, 2}});
  for (size_t id = 0; id < due_ticks.size(); ++id) {
    wheel.Add(due_ticks[id], id);
    std::printf("add %s, due at %llu\n",
                Name(id).c_str(),
                static_cast<unsigned long long>(due_ticks[id]));  // NOLINT(google-runtime-int)
  }
  RunUntilEmpty(wheel);
  return 0;
}
