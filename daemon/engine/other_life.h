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
// Cost:    a million ids for each second that the store was not in use, or part of one.
// Source:  docs/decisions/0106-a-store-that-is-put-back.md
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/limits.h"
#include "base/time.h"

namespace delayd::engine {

// As many ids as can be given out from `last` to `now`.
inline uint64_t IdsSince(WallTime last, WallTime now) {
  constexpr std::chrono::seconds kMost = std::chrono::days(365);  // a wrong clock uses not all up
  const auto away = std::chrono::ceil<std::chrono::seconds>(now - last);
  return static_cast<uint64_t>(std::clamp(away, std::chrono::seconds(0), kMost).count()) *
         limits::kJobIdsASecond;
}

// Milliseconds: no start takes less than one.
inline uint64_t EpochAfter(uint64_t last, WallTime now) {
  return std::max(last + 1, static_cast<uint64_t>(std::max<int64_t>(ToMillis(now), 0)));
}

}  // namespace delayd::engine
