// daemon/beanstalk/stats.h — the YAML of the stats and list commands, field by field in the order
// that clients know.
//
// Units:   seconds, rounded down, as the protocol has them.
// Threads: the core thread; asks the system for the process's CPU time.
// Source:  docs/protocol.md
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/job.h"
#include "base/time.h"
#include "daemon/beanstalk/hub.h"
#include "daemon/engine/command.h"

namespace delayd::beanstalk {

std::string StatsOf(const Hub& hub, const engine::StatsView& stats, const Now& now);
std::string StatsOfJob(const JobView& job, const Now& now);
// `queue`: the engine's queue of this name, or null. None: there is no such tube.
std::optional<std::string> StatsOfTube(const Hub& hub,
                                       std::string_view name,
                                       const engine::QueueView* queue);

// The answer to list-tubes, collected one page of the engine's queues at a time: there may be
// 100,000 of them, and every client would wait meanwhile.
class TubeList {
 public:
  void Add(const engine::QueueList& page);
  // Includes the tubes that some connection uses or watches.
  std::string Text(const Hub& hub);

  // Its approximate size in memory.
  size_t bytes() const { return bytes_; }

 private:
  void Add(const std::string& name);

  std::set<std::string> names_;
  size_t bytes_ = 0;
};

}  // namespace delayd::beanstalk
