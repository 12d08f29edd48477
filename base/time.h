// base/time.h — the two kinds of time in this project, as types that do not convert into each
// other.
//
// Units:   milliseconds, and microseconds where that is too coarse. WallTime counts from the Unix
//          epoch and may step either way; BootTime counts from the boot of the machine, suspend
//          included, and never goes back.
// Threads: values.
// Source:  CLOCK_REALTIME and CLOCK_BOOTTIME of Linux; docs/architecture.md, section "Time".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace delayd {

using Millis = std::chrono::milliseconds;
using Micros = std::chrono::microseconds;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Millis>;

// Only a tag: no clock is read through it. base/clock.h does the reading.
struct BootClock {
  using duration = Millis;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, Millis>;
  static constexpr bool is_steady = true;
};

using BootTime = BootClock::time_point;
// For where a millisecond is too coarse; a BootTime converts into it.
using BootMicros = std::chrono::time_point<BootClock, Micros>;

// One reading of both clocks, rounded down. Each turn takes one and passes it along; nothing else
// asks what time it is.
struct Now {
  WallTime wall;
  BootTime boot;
  // What the rounding cut off, less than a millisecond each; 0 if the clock has no finer
  // resolution.
  Micros wall_rest{0};
  Micros boot_rest{0};

  BootMicros exact_boot() const { return boot + boot_rest; }
};

constexpr int64_t ToMillis(WallTime time) {
  return time.time_since_epoch().count();
}

constexpr int64_t ToMillis(BootTime time) {
  return time.time_since_epoch().count();
}

constexpr WallTime WallFromMillis(int64_t ms) {
  return WallTime(Millis(ms));
}

constexpr BootTime BootFromMillis(int64_t ms) {
  return BootTime(Millis(ms));
}

// RFC 3339: "2026-11-21T09:17:31.206Z", in messages and on the wire. Covers the years 0000 to 9999;
// a time outside, which only a damaged row can hold, is shown as the nearer end of that range.
std::string FormatUtc(WallTime time);

}  // namespace delayd
