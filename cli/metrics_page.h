// cli/metrics_page.h — reads figures from the daemon's GET /metrics.
//
// Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace delayd::cli {

// A metric without labels; none when the page, of an older daemon, does not have it.
std::optional<double> Figure(std::string_view page, std::string_view name);

// A metric per queue; leaves out the queues that the page does not name.
std::map<std::string, double, std::less<>> FiguresByQueue(std::string_view page,
                                                          std::string_view name);

}  // namespace delayd::cli
