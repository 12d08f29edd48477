// protocol/poll_until.h — poll(2) with a deadline in place of a timeout.
//
// Private to the client. Interrupted system calls are resumed.
// Threads: no state.
#pragma once

#include <poll.h>

#include <span>

#include "base/time.h"

namespace delayd::protocol {

// Returns what poll does: how many entries are ready, 0 at the deadline, or -1 with errno.
int PollUntil(std::span<pollfd> entries, BootTime deadline);

}  // namespace delayd::protocol
