// daemon/file_limit.h — how many files and connections the process may have open.
//
// What:    connections and RocksDB's files share one limit, RLIMIT_NOFILE, whose soft value is
// often
//          1024. It is raised as far as it may be; what it is still too low for is told.
// Errors:  a limit with which the store cannot even be opened is kResourceExhausted.
// Threads: before any other.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace delayd {

// To what `connections` clients and the store need, or to the hard limit.
void RaiseFileLimit(uint32_t connections);

Status CheckFileLimit();

// At most `connections`. Fewer, and a warning in the log: under a low limit they leave RocksDB its
// part, because a file that it has no descriptor for ends the daemon.
uint32_t ConnectionsThatFit(uint32_t connections);

}  // namespace delayd
