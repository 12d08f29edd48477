// tests/bench/wheel_bench/bench_clock.h — a clock libevent and libuv can be driven with.
//
// The program defines clock_gettime itself. While a virtual time is set, every monotonic clock
// shows it; otherwise the call goes on to the C library. Units: nanoseconds. Threads: one.
#pragma once

#include <cstdint>

namespace delayd::bench {

void SetVirtualTime(uint64_t ns);
void EndVirtualTime();

// Real time, whatever is set.
uint64_t RealTimeNs();

// What this thread spent on a processor: what others do on the machine stays out of it, except for
// their use of caches and memory.
uint64_t ThreadTimeNs();

}  // namespace delayd::bench
