// daemon/engine/backlog_cut.h — a cut of the largest backlogs to an equal share, while it is made.
//
// What:    there may be ten million jobs of 100,000 queues in memory, and each queue is cut at a
//          place of its own: the jobs are looked at in steps, a turn each, and so are the queues.
// Threads: one owner.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "base/job.h"
#include "daemon/engine/frontier.h"
#include "daemon/engine/job_table.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace delayd::engine {

struct BacklogCut {
  struct Sampled {
    QueueId queue{};
    size_t looks_per_note = 1;
    std::vector<Frontier> places;  // of some of its jobs
  };

  size_t level = 0;                               // so many jobs a queue keeps
  size_t stride = 1;                              // one slot of so many is looked at
  Slot slots = 0;                                 // that there were when it began
  Slot next = 0;                                  // before it all have been looked at
  std::deque<Sampled> above;                      // queues that have more, and are not cut yet
  boost::unordered_flat_map<QueueId, size_t> at;  // their places there
};

}  // namespace delayd::engine
