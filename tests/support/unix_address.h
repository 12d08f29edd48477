// tests/support/unix_address.h — a path as the kernel takes the address of a Unix socket.
//
// Errors:  a failed check when the path is too long.
// Threads: any.
#pragma once

#include <string>

#include "base/check.h"

#include <sys/socket.h>
#include <sys/un.h>

namespace delayd::test {

inline sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  DELAYD_CHECK(path.size() <= sizeof address.sun_path);  // a path may fill it, without a NUL
  path.copy(address.sun_path, path.size());
  return address;
}

}  // namespace delayd::test
