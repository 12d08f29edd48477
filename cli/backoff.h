// cli/backoff.h — how long to wait before the next try when a daemon does not answer.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace delayd::cli {

inline constexpr Millis kBackoffFirst{100};

// Doubles with each of the `tries` that have failed so far, up to `max`.
inline Millis Backoff(int tries, Millis max) {
  return std::min(max, kBackoffFirst * (1 << std::min(tries, 10)));
}

}  // namespace delayd::cli
