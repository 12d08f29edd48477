// daemon/file_limit.h — how many files and connections the process may have open.
//
// What:    connections and RocksDB's files share one limit, RLIMIT_NOFILE, whose soft value is
//          often 1024. It is raised as far as permitted; if it is still too low, a warning says so.
// Errors:  kResourceExhausted if the store cannot even be opened under the limit.
// Threads: called before any other thread exists.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace delayd {

// Raises the limit to what `connections` clients and the store need, or to the hard limit.
void RaiseFileLimit(uint32_t connections);

// Raises it to the hard limit: a store has a file for each 64 MiB, which under the service may be
// more than the soft limit of a shell.
void RaiseFileLimitForStore();

Status CheckFileLimit();

// At most `connections`. Under a low limit it returns fewer and logs a warning: RocksDB needs its
// share, because a file that it has no descriptor for ends the daemon.
uint32_t ConnectionsThatFit(uint32_t connections);

}  // namespace delayd
