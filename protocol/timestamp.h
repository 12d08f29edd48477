// protocol/timestamp.h — instants on the wire: RFC 3339. FormatUtc (base/time.h) writes them.
//
// Errors:  kInvalidArgument "invalid_time" with what was read and an example of what is meant.
// Threads: pure functions.
// Source:  RFC 3339, and RFC 9110, 5.6.7; parsed by cctz. A fraction below a millisecond is rounded
// up: a due time is never early.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace delayd::protocol {

StatusOr<WallTime> ParseTimestamp(std::string_view text);

// Of a Date header, "Sun, 06 Nov 1994 08:49:37 GMT"; none: it is none.
std::optional<WallTime> ParseHttpDate(std::string_view text);

// The fraction of a second, ".250", off the front of `text`, rounded up: 1,000 ms of ".9995". Zero
// where no point stands, nothing where no digit follows it.
std::optional<Millis> TakeFraction(std::string_view* text);

}  // namespace delayd::protocol
