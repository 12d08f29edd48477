// wheel/timer.h — the types that all timer structures here share: tick, handle, expired timer.
//
// Units:   a tick is whatever the caller counts time in; delayd's wall wheel counts milliseconds
//          since 1970, its boot wheel microseconds since the boot.
// Errors:  none. Threads: values. Cost: none.
#pragma once

#include <cstdint>

namespace delayd::wheel {

using Tick = uint64_t;

// Later than every timer: what NextExpiration() returns for an empty structure.
constexpr Tick kNever = UINT64_MAX;

// Names one timer from Add until it fires, is cancelled or drained. After that the value is stale
// for good: it is never given to another timer.
enum class TimerHandle : uint64_t {};

// No timer has this handle.
constexpr TimerHandle kNoTimer{0};

// A timer whose time has come: the id it was added with and the tick it was due at.
struct Expired {
  uint64_t id = 0;
  Tick due = 0;

  friend bool operator==(const Expired&, const Expired&) = default;
};

}  // namespace delayd::wheel
