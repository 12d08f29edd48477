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
  // As often as they were named. While it waits no queue of them goes, and until then those are
  // missing that are not there. A hundred names are looked up once, not at each step, and take an
  // eighth of their memory.
  std::vector<Queue*> queues;
  uint32_t count = 1;
  std::optional<Millis> lease;
  std::string client;
  BootTime end;  // of its wait; until its queues are looked through it is kept a while beyond
  wheel::TimerHandle timeout{};
};

}  // namespace delayd::engine
