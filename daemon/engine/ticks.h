// daemon/engine/ticks.h — the two clocks as their wheels count them, and when a job's timer fires.
//
// Units:   the wall wheel counts in milliseconds, the boot wheel in microseconds. What a client or
//          a record names is a whole number of milliseconds on either; a relative due time counts
//          from the microsecond in which it was promised, as long as the job stays in memory.
// Threads: values. Cost: a multiplication or a division.
// Source:  docs/decisions/0090-microseconds-on-the-boot-clock.md.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/job.h"
#include "base/limits.h"
#include "base/time.h"
#include "storage/record.h"
#include "wheel/timer.h"

namespace delayd::engine {

constexpr wheel::Tick WallTick(WallTime time) {
  return static_cast<wheel::Tick>(ToMillis(time));
}

constexpr WallTime WallTimeOf(wheel::Tick tick) {
  return WallFromMillis(static_cast<int64_t>(tick));
}

constexpr wheel::Tick BootTick(BootTime time) {
  return static_cast<wheel::Tick>(ToMillis(time)) * 1000;
}

constexpr wheel::Tick BootTick(BootMicros time) {
  return static_cast<wheel::Tick>(time.time_since_epoch().count());
}

// Rounded down.
constexpr BootTime BootTimeOf(wheel::Tick tick) {
  return std::chrono::floor<Millis>(BootMicros(Micros(static_cast<int64_t>(tick))));
}

// Clock readings are stored rounded down. A relative job waits this much longer, or it could fire a
// fraction of a millisecond early. The due time that clients see leaves it out, so that "in 30m" is
// shown as exactly that.
inline constexpr Millis kClockRounding{1};
// The same for the microseconds that the boot wheel counts in.
inline constexpr Micros kBootRounding{1};

// When a job is due, as a record or its head says.
struct DueTimes {
  DueKind kind;
  WallTime wall;
  uint64_t boot_id;
  BootTime boot;
  Micros rounded_up{0};

  // A delay counts on the boot clock of the boot in which it was promised; all else on the wall
  // clock.
  bool IsOnBootClock(uint64_t this_boot) const {
    return kind == DueKind::kRelative && boot_id == this_boot;
  }
};

inline DueTimes DueOf(const storage::TimerHead& head) {
  return {head.due_kind, head.due, head.boot_id, head.boot_due};
}

inline DueTimes DueOf(const storage::JobRecord& record) {
  return {record.due_kind, record.due, record.boot_id, record.boot_due, record.rounded_up};
}

// How far the wall clock was set since a delay was promised that counts on the boot clock. In whole
// seconds: the clocks are read rounded down, and what clients see must not waver.
inline Millis StepOfWall(const DueTimes& due, uint64_t boot_id, const Now& now) {
  if (!due.IsOnBootClock(boot_id)) {
    return Millis(0);
  }
  const Millis step =
      std::chrono::round<std::chrono::seconds>((now.wall - due.wall) - (now.boot - due.boot));
  const Millis wall = due.wall.time_since_epoch();
  return std::clamp(step, -wall, Millis(limits::kWallMsMax) - wall);
}

// When a job's timer fires.
struct Moment {
  bool on_boot_clock;
  wheel::Tick tick;

  bool IsOver(const Now& now) const {
    return tick <= (on_boot_clock ? BootTick(now.exact_boot()) : WallTick(now.wall));
  }

  // In whole milliseconds; negative when it is over.
  Millis Until(const Now& now) const {
    return on_boot_clock ? BootTimeOf(tick) - now.boot : WallTimeOf(tick) - now.wall;
  }
};

}  // namespace delayd::engine
