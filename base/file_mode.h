// base/file_mode.h — who may read a file with a secret in it.
//
// Errors:  none.
// Threads: any.
#pragma once

#include <unistd.h>

#include <sys/stat.h>

namespace delayd {

// Whoever may use the daemon's socket is in its group, and must not get its secrets by that.
inline bool IsOpenToOwnGroup(const struct stat& info) {
  return (info.st_mode & (S_IRGRP | S_IWGRP)) != 0 && info.st_gid == ::getegid() &&
         ::geteuid() != 0;
}

}  // namespace delayd
