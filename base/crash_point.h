// base/crash_point.h — named places in the code where a storm may kill the process; nothing at all
// in the daemon that is shipped.
//
// What:    with DELAYD_CRASH_POINTS defined, which only the copy of the daemon under tests/storm
//          is compiled with, DELAYD_CRASH_AT=NAME:N in the environment ends the process by SIGKILL
//          when it comes to the place NAME for the Nth time. Every name stands in
//          tests/storm/crash_points.cc too, which says how a storm gets there.
// Units:   hits are counted from 1, over all threads.
// Errors:  a DELAYD_CRASH_AT that makes no sense aborts.
// Threads: any.
// Cost:    nothing without the definition; a comparison of strings with it.
#pragma once

#ifdef DELAYD_CRASH_POINTS

#include <cstdint>

namespace delayd {

void CrashPoint(const char* name);

// Logs are turned over all the time, where a real daemon takes minutes to fill one.
inline constexpr uint64_t kCrashTestWalBytes = uint64_t{256} << 10;

}  // namespace delayd

#define DELAYD_CRASH_POINT(name) ::delayd::CrashPoint(name)

#else

#define DELAYD_CRASH_POINT(name) static_cast<void>(0)

#endif
