// base/standard_fds.h — stdin, stdout and stderr that whoever started us has closed.
//
// Errors:  none; without /dev/null they stay closed.
// Threads: before any is started.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace delayd {

// A file or socket that got one of their numbers would be read as the input, or written to as the
// log. They are opened the wrong way round, so that using them still fails.
inline void ReserveStandardFds() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      // The lowest free number is this one. A child is to find it taken too.
      const int opened = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // NOLINT
      static_cast<void>(opened);
    }
  }
}

}  // namespace delayd
