// protocol/duration.h — durations as people write them.
//
// Units:   "500ms", "90s", "30m", "1h30m", "2d", "1w", "1.5h", "1h 30m", "5 min", and ISO 8601
//          "PT30M"; 1d is 24 h. A bare number is refused with a hint: nobody agrees whether it
//          means seconds or milliseconds. "0" alone is zero.
// Errors:  kInvalidArgument "invalid_duration" with what was read and an example.
// Threads: pure functions.
#pragma once

#include <string_view>

#include "base/duration_text.h"
#include "base/status.h"
#include "base/time.h"

namespace delayd::protocol {

// 0 up to limits::kDelayMsMax; more precision than a millisecond is refused.
StatusOr<Millis> ParseDuration(std::string_view text);
// ParseDuration reads its text back exactly.
using delayd::FormatDuration;

}  // namespace delayd::protocol
