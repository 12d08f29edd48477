// daemon/beanstalk/stats.h — the YAML of the stats and list commands, field by field in the order
// that clients know.
//
// Units:   seconds, rounded down, as the protocol has them.
// Threads: the core thread; asks the system for the process's CPU time.
// Source:  docs/protocol.md
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/job.h"
#include "base/time.h"
#include "daemon/beanstalk/hub.h"
#include "daemon/engine/command.h"

namespace delayd::beanstalk {

std::string StatsOf(const Hub& hub, const engine::StatsView& stats, const Now& now);
std::string StatsOfJob(const JobView& job, const Now& now);
// `queue`: what the engine has under this name, if anything. None: there is no such tube.
std::optional<std::string> StatsOfTube(const Hub& hub,
                                       std::string_view name,
                                       const engine::QueueView* queue);
// `used`: tubes that a connection used or watched when the command came, each with a space behind
// it.
std::string ListOfTubes(std::string_view used, const engine::QueueList& queues);

}  // namespace delayd::beanstalk
