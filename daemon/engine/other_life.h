// daemon/engine/other_life.h — what a store may have given out in another life.
//
// What:    a backup or a snapshot that is put back goes on from where it was taken, and knows
//          nothing of the ids and lease tokens that were given out since. They are known to
//          clients and workers, whose cancels and acks would end other jobs. So a start leaves out
//          as many ids as there may have been since the store was last written, and takes an epoch
//          by the clock.
// Units:   wall-clock times. Behind a clock that was set back meanwhile there is no such promise.
// Errors:  none.
// Threads: functions.
// Cost:    a thousand ids for each millisecond that the store was not in use.
// Source:  docs/decisions/0106-a-store-that-is-put-back.md
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/limits.h"
#include "base/time.h"

namespace delayd::engine {

// The clock that is gone by, or, where that is held, as far ahead of it as `machine` shows. Above
// 60 days the remainder of a month counts: it differs each time, and a machine that comes up in
// 2099 does not use up all ids.
inline WallTime ShownAtStart(WallTime now, std::optional<WallTime> machine) {
  constexpr Millis kMonth = std::chrono::days(30);
  const Millis ahead = std::chrono::duration_cast<Millis>(machine.value_or(now) - now);
  return now + std::max(Millis(0), ahead <= 2 * kMonth ? ahead : kMonth + ahead % kMonth);
}

// As many ids as can be given out from `last` to `now`.
inline uint64_t IdsSince(WallTime last, WallTime now) {
  constexpr Millis kMost = std::chrono::days(365);  // a wrong clock uses not all up
  return static_cast<uint64_t>(std::clamp(now - last, Millis(0), kMost).count()) *
         (limits::kJobIdsASecond / 1000);
}

// Milliseconds: no start takes less than one.
inline uint64_t EpochAfter(uint64_t last, WallTime now) {
  return std::max(last + 1, static_cast<uint64_t>(std::max<int64_t>(ToMillis(now), 0)));
}

}  // namespace delayd::engine
