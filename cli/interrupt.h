// cli/interrupt.h — SIGINT and SIGTERM for a verb that shuts down cleanly: the first is noted and
// ends every wait here, the second ends the process at once. An ignored SIGINT stays ignored.
//
// Errors:  kUnavailable "interrupted".
// Threads: one guard at a time; the handler may run in any thread.
#pragma once

#include <signal.h>

#include <cstddef>

#include "base/status.h"
#include "base/time.h"

namespace delayd::cli {

// How long an interrupted command still waits for an answer, if its request can safely be repeated.
inline constexpr Millis kTimeToAnswer{2000};

// Whether we were started with the signal ignored: SIGHUP by nohup, SIGINT by a shell without job
// control for what it runs in the background. Ctrl-C is meant for the others then.
bool IsIgnored(int signal);

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();

  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();
  static Status Check();
  // Readable from the first signal on.
  static int fd();
  static Status Nap(Millis time);
  // Whether there was nothing to read, and no signal, for `time`.
  static bool IsSilent(int fd, Millis time);
  // Waits for input and returns what is there; 0 at the end. kInvalidArgument if reading fails.
  static StatusOr<size_t> Read(int fd, char* to, size_t bytes_max);

 private:
  struct sigaction old_interrupt_ {};

  struct sigaction old_terminate_ {};
};

}  // namespace delayd::cli
