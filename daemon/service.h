// daemon/service.h — the daemon's life: opens the store, loads the jobs, listens, and runs turns
// until it is told to stop.
//
// Errors:  each is one line in the log, which says what to do, and one of daemon/exit_codes.h.
// Threads: the caller's thread becomes the core thread.
#pragma once

#include "daemon/config.h"
#include "daemon/reload.h"

namespace delayd {

// Returns the exit code of the process. `read_config` is called on SIGHUP.
int RunService(const Config& config, const ReadConfig& read_config);

}  // namespace delayd
