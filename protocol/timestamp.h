// protocol/timestamp.h — instants on the wire: RFC 3339. FormatUtc (base/time.h) writes them.
//
// Errors:  kInvalidArgument "invalid_time" with what was read and an example of what is meant.
// Threads: pure functions.
// Source:  RFC 3339; parsed by cctz. A fraction below a millisecond is rounded up: a due time is
// never early.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace delayd::protocol {

StatusOr<WallTime> ParseTimestamp(std::string_view text);

// The digits behind the point of a second in milliseconds, rounded up: 1,000 of .9995.
int64_t FractionMillis(std::string_view digits);

}  // namespace delayd::protocol
