// cli/metrics_page.h — figures of the daemon's GET /metrics.
//
// Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace delayd::cli {

// Of a metric without labels; none: the page, of an older daemon, has no such metric.
std::optional<double> Figure(std::string_view page, std::string_view name);

// Of a metric by queue; without the queues that the page does not tell by name.
std::map<std::string, double, std::less<>> FiguresByQueue(std::string_view page,
                                                          std::string_view name);

}  // namespace delayd::cli
