// daemon/engine/waiting_lease.h — a lease request that waits for a job.
#pragma once

#include "base/time.h"
#include "daemon/engine/command.h"
#include "wheel/timer.h"

namespace delayd::engine {

struct WaitingLease {
  Lease command;
  BootTime end;  // of its wait; until its queues are looked through it is kept a while beyond
  wheel::TimerHandle timeout{};
};

}  // namespace delayd::engine
