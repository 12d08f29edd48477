// base/standard_fds.h — replaces a stdin, stdout or stderr that our parent process has closed.
//
// Errors:  none.
// Threads: call it before any thread is started.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace delayd {

// Otherwise a file or socket could get one of their numbers, and would be read as the input or
// written to as the log. With O_PATH using them still fails; and "/" is there where /dev/null is
// not.
inline void ReserveStandardFds() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      // This fd is the lowest free number, so open returns it. No O_CLOEXEC: a child must find it
      // taken too.
      const int opened = ::open("/", O_PATH);  // NOLINT
      static_cast<void>(opened);
    }
  }
}

}  // namespace delayd
