// daemon/engine/waiting_lease.h — a lease request whose queues have been looked up, and which may
// wait for a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "daemon/engine/queue_table.h"
#include "wheel/timer.h"

namespace delayd::engine {

struct WaitingLease {
  // One entry for each time that a queue was named. While the request waits, none of its queues is
  // removed; until it waits, queues that do not exist are missing here. A hundred names are thus
  // looked up once and not at each step, and take an eighth of the memory.
  std::vector<Queue*> queues;
  uint32_t count = 1;
  std::optional<Millis> lease;
  std::string client;
  BootTime end;  // of its wait; it may be kept a while longer, until its queues are looked through
  wheel::TimerHandle timeout{};
};

}  // namespace delayd::engine
