// cli/local_time.h — times as people write and read them, in their own zone.
//
// What:    reads RFC 3339; the same without a zone, as local time; "tomorrow 09:00", "friday noon",
//          "18:30" (the next one), "+30m" or "now + 30m", "@1800000000". Writes RFC 3339 with the
//          zone's offset, which can be pasted back.
// Errors:  kInvalidArgument "invalid_time" with an example. A local time that a clock change skips
//          or repeats is refused, since a guess could be an hour off. So is a local time in an
//          unknown zone.
// Threads: pure functions.
// Source:  zones by cctz.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

#include <cctz/time_zone.h>

namespace delayd::cli {

struct LocalClock {
  WallTime now;
  cctz::time_zone zone = cctz::utc_time_zone();
  // The value of TZ when it names no known zone. Times are then shown in UTC (`zone`), but none is
  // read in it, since that would be a guess.
  std::string unknown_zone;
};

// Reads "now", "+30m" and "now + 30m"; none when the text is not meant as one of these.
std::optional<StatusOr<Millis>> ParseFromNow(std::string_view text);
StatusOr<WallTime> ParseLocalTime(std::string_view text, const LocalClock& clock);
// "2027-01-01T10:00:00.000+01:00"; UTC ends with Z.
std::string FormatLocalTime(WallTime time, const cctz::time_zone& zone);

}  // namespace delayd::cli
