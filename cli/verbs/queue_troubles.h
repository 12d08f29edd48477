// cli/verbs/queue_troubles.h — finds queues whose due jobs do not reach a worker.
//
// What:    totals do not show them: a worker on one queue says nothing about another. A suspicious
//          queue is looked at again a second later, because between two jobs of a quick worker none
//          is leased. Jobs handed out meanwhile and not acked have failed.
// Errors:  the daemon's.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  uint64_t unknown = 0;  // queues that may be like these, about whose jobs we did not ask
};

// `waiting`: how many lease requests are waiting, whatever their queue.
StatusOr<QueueTroubles> FindQueueTroubles(Api* api, uint64_t waiting, const Context& context);

// Queues whose jobs all wait for another attempt, none having been acked since the daemon started.
// `metrics`: the daemon's page.
StatusOr<QueueTroubles> FindFailingQueues(Api* api, std::string_view metrics);

}  // namespace delayd::cli
