// daemon/engine/clock_watch.h — whether the wall clock can be believed, and what it is taken for
// while it cannot.
//
// What:    every reading of the clocks passes through Trust. A wall clock that is behind what was
//          seen before makes nothing early, only late: it is followed, and reported as behind. One
//          that is far ahead could make jobs fire years too early, which nobody can undo: it is
//          held. While it is held, the wall time is the last one that was believed plus the real
//          time since then, which is never ahead of the truth. The hold ends when the clock is put
//          right, when the kernel says that it is synchronised, when the operator accepts it, or
//          after hold_max.
// Units:   base/time.h.
// Errors:  none.
// Threads: one owner; reads no clock itself.
// Cost:    a few comparisons a reading.
// Source:  docs/decisions/0075-a-clock-that-is-not-believed.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"

namespace delayd::engine {

struct ClockWatchOptions {
  Millis max_jump{std::chrono::hours(24 * 30)};  // a clock further ahead is held; 0: none is
  Millis hold_max{std::chrono::hours(1)};
};

// The highest wall time that was believed, and where the boot clock stood then.
struct ClockSeen {
  WallTime wall;
  uint64_t boot_id = 0;
  BootTime boot;
};

enum class ClockState : uint8_t { kTrusted, kBehind, kHeld };

std::string_view ClockStateName(ClockState state);  // "trusted", "behind", "held"

class ClockWatch {
 public:
  // A clock that is behind by no more than this is not reported: a leap second, a small correction.
  static constexpr Millis kTolerance{2000};

  // `last`: of the run before, as the store has it. `raw`: the clocks as they are.
  ClockWatch(const ClockWatchOptions& options,
             const std::optional<ClockSeen>& last,
             uint64_t boot_id,
             const Now& raw);

  // The time to go by. May begin or end a hold.
  Now Trust(const Now& raw);

  // Someone who knows says that the wall clock is right.
  void Accept(const Now& raw);

  ClockState state() const { return state_; }

  // While held: how far the clock is ahead of the wall time that is believed. While behind: how far
  // it is behind. Both at the last reading.
  Millis difference() const { return difference_; }

  // How often the clock was held or fell behind so far.
  uint64_t suspicions() const { return suspicions_; }

 private:
  void Hold(WallTime believed, BootTime boot);
  void Follow(const Now& raw);

  const ClockWatchOptions options_;
  ClockState state_ = ClockState::kTrusted;
  Now last_;     // the last reading that was believed, or the beginning of the hold
  Now highest_;  // of all that were believed, the last that has the highest wall time
  BootTime hold_end_;
  Millis difference_{0};
  uint64_t suspicions_ = 0;
};

}  // namespace delayd::engine
