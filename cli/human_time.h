// cli/human_time.h — durations, counts and lists of names in words.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/time.h"

namespace delayd::cli {

// The two largest units, rounded: "2d 3h", "12m 4s", "7s", "350ms"; "-5s" when negative.
std::string RoughDuration(Millis duration);
// "in 12m 4s", "now" or "5s ago".
std::string FromNow(WallTime time, WallTime now);
// The same for a due time: "is due in 12m 4s", "is due now" or "was due 5s ago".
std::string DueFromNow(WallTime due, WallTime now);
// "1 job", "6 jobs".
std::string Jobs(uint64_t count);
// The verb after a count: "was" for one, "were" for any other.
std::string_view WasOrWere(uint64_t count);
// Why a paused queue hands out nothing, and the cure. `left`: of a timed pause.
std::string PausedQueue(std::string_view queue, uint64_t ready, std::optional<Millis> left);
// Why the damaged jobs of a queue are not handed out, and the cure.
std::string DamagedQueue(std::string_view queue, uint64_t damaged);
// "mail, orders and 5 more".
std::string FirstOf(const std::set<std::string>& names);

}  // namespace delayd::cli
