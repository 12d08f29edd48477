// daemon/engine/engine_figures.h — what the engine tells an operator's monitoring.
//
// What:    a copy of its counters as they are now. Unlike the answer to GetStats it does not wait
//          for the commit of what it counts: a commit that fails ends the process and the figures
//          with it.
// Units:   base/time.h.
// Threads: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/time.h"
#include "daemon/engine/command.h"

namespace delayd::engine {

// From "as exact as the clock" to "the daemon or the workers were away".
inline constexpr std::array<uint64_t, 18> kLatenessBoundsMs = {1,
                                                               2,
                                                               5,
                                                               10,
                                                               25,
                                                               50,
                                                               100,
                                                               250,
                                                               500,
                                                               1'000,
                                                               2'500,
                                                               5'000,
                                                               10'000,
                                                               30'000,
                                                               60'000,
                                                               300'000,
                                                               3'600'000,
                                                               86'400'000};

struct EngineFigures {
  StatsView totals;
  // The oldest queues that have jobs or are paused, then the oldest others: as many as were asked
  // for.
  std::vector<QueueView> queues;
  QueueView other;  // the sum of all others
  // Jobs stored by user, as many users as queues were asked for, and the sum of all others.
  std::vector<std::pair<std::string, uint64_t>> users;
  uint64_t other_users = 0;
  Histogram lateness_ms;  // of every hand-out
  size_t jobs_in_memory = 0;
  size_t jobs_in_memory_max = 0;
  bool all_in_memory = true;
  Millis frontier_ahead{0};  // the jobs of all queues that are due within this are in memory
  size_t uncommitted_bytes = 0;
  size_t replies_parked = 0;  // answers that wait for their commit
};

}  // namespace delayd::engine
