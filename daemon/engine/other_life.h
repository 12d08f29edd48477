// daemon/engine/other_life.h — what a store may have given out in another life.
//
// What:    a restored backup or snapshot goes on from where it was taken, and knows nothing of the
//          ids and lease tokens that were given out since. Clients and workers still have them, and
//          their cancels and acks would end other jobs. So a start skips as many ids as may have
//          been given out since the store was last written, and takes its epoch from the clock.
// Units:   wall-clock times. If the clock was set back meanwhile, nothing is promised.
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

// The believed clock or, while it is held, as far ahead of it as `machine` shows. Beyond 60 days
// only a month and the remainder of a month count: that differs each time, and a machine that comes
// up in 2099 does not use up all ids.
inline WallTime ShownAtStart(WallTime now, std::optional<WallTime> machine) {
  constexpr Millis kMonth = std::chrono::days(30);
  const Millis ahead = std::chrono::duration_cast<Millis>(machine.value_or(now) - now);
  return now + std::max(Millis(0), ahead <= 2 * kMonth ? ahead : kMonth + ahead % kMonth);
}

// As many ids as can be given out from `last` to `now`, or kIdsLeftOutMax.
inline uint64_t IdsSince(WallTime last, WallTime now) {
  constexpr uint64_t kAMilli = limits::kJobIdsASecond / 1000;
  const auto millis = static_cast<uint64_t>(std::max(now - last, Millis(0)).count());
  return std::min(millis, limits::kIdsLeftOutMax / kAMilli) * kAMilli;
}

// Milliseconds: no start takes less than one.
inline uint64_t EpochAfter(uint64_t last, WallTime now) {
  return std::max(last + 1, static_cast<uint64_t>(std::max<int64_t>(ToMillis(now), 0)));
}

}  // namespace delayd::engine
