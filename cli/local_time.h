// cli/local_time.h — moments as people write and read them, in their zone.
//
// What:    reads RFC 3339; the same without a zone, which is local then; "tomorrow 09:00",
//          "friday noon", "18:30" (the next one), "+30m" or "now + 30m", "@1800000000". Writes RFC
//          3339 with the zone's offset, which can be pasted back.
// Errors:  kInvalidArgument "invalid_time" with an example. A local time that the clocks skip or
//          repeat as they change is refused: a guess would be an hour off. So is one in a zone that
//          is not known.
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
  // What TZ says where that names no zone: `zone` is UTC then, for showing times. None is read by
  // it, since that would be a guess.
  std::string unknown_zone;
};

// Of "now", "+30m" and "now + 30m"; none: it is not meant as one of these.
std::optional<StatusOr<Millis>> ParseFromNow(std::string_view text);
StatusOr<WallTime> ParseLocalTime(std::string_view text, const LocalClock& clock);
// "2027-01-01T10:00:00.000+01:00"; UTC ends with Z.
std::string FormatLocalTime(WallTime time, const cctz::time_zone& zone);

}  // namespace delayd::cli
