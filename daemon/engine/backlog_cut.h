// daemon/engine/backlog_cut.h — the state of a cut, which brings the largest backlogs down to an
// equal share.
//
// What:    there may be ten million jobs of 100,000 queues in memory, and each queue is cut at a
//          place of its own. So the jobs are looked at in steps, one a turn, and then the queues.
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

  size_t level = 0;                               // how many jobs each queue keeps
  size_t stride = 1;                              // one slot in this many is looked at
  Slot slots = 0;                                 // of the table when the cut began
  Slot next = 0;                                  // slots before it have been looked at
  std::deque<Sampled> above;                      // queues above the level that are not cut yet
  boost::unordered_flat_map<QueueId, size_t> at;  // their places in `above`
};

}  // namespace delayd::engine
