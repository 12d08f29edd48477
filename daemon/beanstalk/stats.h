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
// `queue`: what the engine has under this name, if anything. None: there is no such tube.
std::optional<std::string> StatsOfTube(const Hub& hub,
                                       std::string_view name,
                                       const engine::QueueView* queue);

// What list-tubes answers: gathered a page of the engine's queues at a time, since there may be
// 100,000, and everybody waits.
class TubeList {
 public:
  void Add(const engine::QueueList& page);
  // With the tubes that a connection uses or watches.
  std::string Text(const Hub& hub);

  // About what it takes.
  size_t bytes() const { return bytes_; }

 private:
  void Add(const std::string& name);

  std::set<std::string> names_;
  size_t bytes_ = 0;
};

}  // namespace delayd::beanstalk
