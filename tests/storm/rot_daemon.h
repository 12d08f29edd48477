// tests/storm/rot_daemon.h — the same look at a damaged directory, through the real daemon.
//
// What:    starts it, asks for every key and every job over HTTP, and reads what its log says.
// Errors:  a RotFinding, as CheckRottenStore gives it.
// Threads: one; the daemon is a process of its own.
// Cost:    about 0.3 s.
#pragma once

#include <string>

#include "tests/storm/rot_store.h"

namespace delayd::storm {

// `work`: a directory for socket and log.
RotFinding CheckRottenDaemon(const std::string& directory,
                             const std::string& file,
                             const RotJobs& jobs,
                             const std::string& work);

}  // namespace delayd::storm
