// base/crash_point.h — named places in the code where a crash test (tests/storm) may kill the
// process; compiled out of the daemon that is shipped.
//
// What:    with DELAYD_CRASH_POINTS defined, which only the copy of the daemon under tests/storm is
//          compiled with, DELAYD_CRASH_AT=NAME:N in the environment ends the process by SIGKILL
//          when it reaches the place NAME for the Nth time. Every name is also listed in
//          tests/storm/crash_points.cc, which says how a storm reaches it.
// Units:   hits are counted from 1, over all threads.
// Errors:  a DELAYD_CRASH_AT that makes no sense aborts.
// Threads: any.
// Cost:    nothing without the definition; a comparison of strings with it.
#pragma once

#ifdef DELAYD_CRASH_POINTS

#include <cstdint>

namespace delayd {

void CrashPoint(const char* name);

// Logs are switched all the time; a real daemon takes minutes to fill one.
inline constexpr uint64_t kCrashTestWalBytes = uint64_t{256} << 10;

}  // namespace delayd

#define DELAYD_CRASH_POINT(name) ::delayd::CrashPoint(name)

#else

#define DELAYD_CRASH_POINT(name) static_cast<void>(0)

#endif
