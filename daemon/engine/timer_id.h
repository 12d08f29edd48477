// daemon/engine/timer_id.h — what a timer in the wheels stands for, packed into the wheel's 64-bit
// id.
#pragma once

#include <cstdint>

#include "daemon/engine/job_table.h"

namespace delayd::engine {

// Without any of these bits: a job's due time or the end of its lease, as its phase says. With this
// one: the end of a lease request's wait.
inline constexpr uint64_t kWaiterBit = uint64_t{1} << 63;
// The end of a queue's pause.
inline constexpr uint64_t kPauseBit = uint64_t{1} << 62;
// The moment at which a queue's rate cap lets it hand out again.
inline constexpr uint64_t kRateBit = uint64_t{1} << 61;

constexpr uint64_t TimerIdOfJob(Slot slot) {
  return slot;
}

constexpr uint64_t TimerIdOfWaiter(uint64_t request) {
  return request | kWaiterBit;
}

constexpr uint64_t TimerIdOfPause(QueueId queue) {
  return ToInt(queue) | kPauseBit;
}

constexpr uint64_t TimerIdOfRate(QueueId queue) {
  return ToInt(queue) | kRateBit;
}

}  // namespace delayd::engine
