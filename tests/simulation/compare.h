// tests/simulation/compare.h — where two answers differ, in words.
//
// What:    each Difference is empty when the answer is the expected one.
// Threads: pure functions.
#pragma once

#include <string>

#include "daemon/engine/command.h"

namespace delayd::simulation {

std::string Difference(const JobView& expected, const JobView& actual);
std::string Difference(const engine::Reply& expected, const engine::Reply& actual);
std::string Difference(const engine::StatsView& expected, const engine::StatsView& actual);

// Its name and what it names.
std::string DescribeCommand(const engine::Command& command);
// One line that holds everything a client can see of an answer; the trace is made of these.
std::string Describe(const engine::Reply& reply);
std::string Describe(const JobView& job);

}  // namespace delayd::simulation
