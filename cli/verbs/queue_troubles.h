// cli/verbs/queue_troubles.h — queues whose due jobs do not get to a worker.
//
// What:    sums do not show them: a worker of one queue says nothing of another. What looks so at
//          one moment is looked at again a second later, since between two jobs of a quick worker
//          none is leased; what was handed out meanwhile and not acked has failed.
// Errors:  those of the daemon.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/context.h"

namespace delayd::cli {

struct QueueTroubles {
  struct Trouble {
    std::string what;
    std::string cure;
  };

  std::vector<Trouble> worst;
  uint64_t others = 0;
  uint64_t unknown = 0;  // how long their jobs have been due was not asked
};

// `waiting`: lease requests that wait for a job of any queue.
StatusOr<QueueTroubles> FindQueueTroubles(Api* api, uint64_t waiting, const Context& context);

}  // namespace delayd::cli
