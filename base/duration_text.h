// base/duration_text.h — durations as people write them, in messages.
//
// Errors:  none; OutOfRange builds a Status but cannot fail.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace delayd {

// The shortest exact form: "1h30m", "2d", "0s"; 1500 ms is "1s500ms".
std::string FormatDuration(Millis duration);

// "lease of 8d is out of range; use 1ms to 7d", as kInvalidArgument with `reason`, a literal.
Status OutOfRange(
    std::string_view what, Millis is, Millis min, Millis max, std::string_view reason);

}  // namespace delayd
