// protocol/timestamp.h — instants on the wire: RFC 3339. FormatUtc (base/time.h) writes them.
//
// Errors:  kInvalidArgument "invalid_time" with what was read and an example.
// Threads: pure functions.
// Source:  RFC 3339, and RFC 9110, 5.6.7; parsed by cctz. Fractions of a millisecond are rounded
// up, so that no due time is early.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace delayd::protocol {

StatusOr<WallTime> ParseTimestamp(std::string_view text);

// Parses a Date header, "Sun, 06 Nov 1994 08:49:37 GMT"; none when it is not one.
std::optional<WallTime> ParseHttpDate(std::string_view text);

// Takes the fraction of a second, ".250", off the front of `text`, rounded up: ".9995" is 1,000 ms.
// Zero without a point; none when no digit follows the point.
std::optional<Millis> TakeFraction(std::string_view* text);

}  // namespace delayd::protocol
