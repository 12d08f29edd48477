#include "protocol/poll_until.h"

#include <errno.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace delayd::protocol {

int PollUntil(std::span<pollfd> entries, BootTime deadline) {
  const SystemClock clock;
  for (;;) {
    const int64_t left = std::max<int64_t>(0, (deadline - clock.Sample().boot).count());
    const int timeout = static_cast<int>(std::min<int64_t>(left, std::numeric_limits<int>::max()));
    const int ready = poll(entries.data(), entries.size(), timeout);
    if (ready > 0 || (ready == 0 && left <= timeout) || (ready < 0 && errno != EINTR)) {
      return ready;
    }
  }
}

}  // namespace delayd::protocol
