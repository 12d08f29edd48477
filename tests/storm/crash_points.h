// tests/storm/crash_points.h — every DELAYD_CRASH_POINT of the code, and how a storm gets there.
#pragma once

#include <cstdint>
#include <span>

namespace delayd::storm {

enum class Reached : uint8_t {
  kOnFirstStart,  // of an empty directory
  kOnStart,
  kOnTornStart,  // of a directory whose newest log has a torn tail, as a power cut leaves it
  kUnderLoad,
  kOnStop,  // after SIGTERM
};

struct CrashPointCase {
  const char* name;
  Reached when;
  // Storms pick a hit from 1 to this.
  uint32_t hits_max;
};

std::span<const CrashPointCase> CrashPointCases();

}  // namespace delayd::storm
