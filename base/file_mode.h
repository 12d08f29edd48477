// base/file_mode.h — who may read a file with a secret of the daemon in it.
//
// Errors:  kPermissionDenied, with the cure.
// Threads: any.
#pragma once

#include <unistd.h>

#include <string>

#include "base/status.h"

#include <sys/stat.h>

namespace delayd {

// `what` is "the key" or so; `renew` what is to be done since somebody may have read it. Whoever
// may use the daemon's socket is in its group, and must not get its secrets by that.
inline Status CheckSecretMode(const struct stat& info,
                              const std::string& what,
                              const std::string& path,
                              const std::string& renew) {
  if ((info.st_mode & (S_IROTH | S_IWOTH)) != 0) {
    return PermissionDenied(what + " " + path +
                            " can be read or written by everybody; run 'chmod o-rw " + path +
                            "' and " + renew);
  }
  if ((info.st_mode & (S_IRGRP | S_IWGRP)) != 0 && info.st_gid == ::getegid() && ::geteuid() != 0) {
    return PermissionDenied(what + " " + path +
                            " can be read or written by the daemon's group, which is that of its "
                            "socket's users; run 'chown delayd " +
                            path + " && chmod 400 " + path + "' and " + renew);
  }
  return OkStatus();
}

}  // namespace delayd
