// cli/stat.h — one figure of the daemon's GET /v1/stats.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/stats_json.h"

namespace delayd::cli {

// None when the daemon, an older one, does not tell it, or not as a number.
std::optional<uint64_t> StatNumber(const std::vector<protocol::Stat>& stats, std::string_view name);
std::optional<std::string> StatText(const std::vector<protocol::Stat>& stats,
                                    std::string_view name);

}  // namespace delayd::cli
