// Interposes clock_gettime; see the header.
#include "tests/bench/wheel_bench/bench_clock.h"

#include <dlfcn.h>
#include <time.h>

namespace {

using ClockGettime = int (*)(clockid_t, timespec*);

bool virtual_time = false;     // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
uint64_t virtual_time_ns = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

constexpr uint64_t kNsPerSecond = 1'000'000'000;

int RealClockGettime(clockid_t clock, timespec* time) {
  static const auto real = reinterpret_cast<ClockGettime>(dlsym(RTLD_NEXT, "clock_gettime"));
  return real(clock, time);
}

uint64_t ReadNs(clockid_t clock) {
  timespec time = {};
  RealClockGettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

// Only the monotonic clocks: they are what event loops time with.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!virtual_time || clock == CLOCK_REALTIME) {
    return RealClockGettime(clock, time);
  }
  time->tv_sec = static_cast<time_t>(virtual_time_ns / kNsPerSecond);
  time->tv_nsec = static_cast<long>(virtual_time_ns % kNsPerSecond);  // NOLINT(google-runtime-int)
  return 0;
}

namespace delayd::bench {

void SetVirtualTime(uint64_t ns) {
  virtual_time = true;
  virtual_time_ns = ns;
}

void EndVirtualTime() {
  virtual_time = false;
}

uint64_t RealTimeNs() {
  return ReadNs(CLOCK_MONOTONIC);
}

uint64_t ThreadTimeNs() {
  return ReadNs(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace delayd::bench
