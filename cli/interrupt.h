// cli/interrupt.h — SIGINT and SIGTERM for a verb that ends in order: the first is noted and ends
// every wait here, the second ends the process at once.
//
// Errors:  kUnavailable "interrupted".
// Threads: one guard at a time; the handler may run in any thread.
#pragma once

#include <signal.h>

#include <cstddef>

#include "base/status.h"
#include "base/time.h"

namespace delayd::cli {

// What a daemon has to answer in when somebody has interrupted what can be done again without harm.
inline constexpr Millis kTimeToAnswer{2000};

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();

  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();
  static Status Check();
  // Can be read from the first signal on.
  static int fd();
  static Status Nap(Millis time);
  // Whether there was nothing to read for so long, and no signal.
  static bool IsSilent(int fd, Millis time);
  // What there is, once there is some; 0 at the end. kInvalidArgument when it cannot be read.
  static StatusOr<size_t> Read(int fd, char* to, size_t bytes_max);

 private:
  struct sigaction old_interrupt_ {};

  struct sigaction old_terminate_ {};
};

}  // namespace delayd::cli
