// daemon/engine/frontier.h — where memory ends: a place in the store's order of timers.
//
// Threads: values.
#pragma once

#include <utility>

#include "base/job.h"
#include "base/time.h"

namespace delayd::engine {

// (key_due, id): a job's place in that order.
using TimerPlace = std::pair<WallTime, JobId>;
// Jobs at or behind it lie on disk only.
using Frontier = TimerPlace;

// No job is keyed so late.
inline constexpr WallTime kNothingFar = WallTime::max();

}  // namespace delayd::engine
