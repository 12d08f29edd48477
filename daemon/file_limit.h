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

// To the hard limit. A store keeps all its files open, one for each 64 MiB, so how many it will
// need while it grows is not known at the start.
void RaiseFileLimit();

Status CheckFileLimit();

// At most `connections`. Under a low limit it returns fewer and logs a warning: RocksDB needs its
// share, because a file that it has no descriptor for ends the daemon.
uint32_t ConnectionsThatFit(uint32_t connections);

}  // namespace delayd
