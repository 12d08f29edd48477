// daemon/last_words.h — the daemon's last log line where no Status can be returned
// (base/last_words.h). It names the limits that may have been hit; the exit code is kExitFailed.
//
// Errors:  none.
// Threads: InstallLastWords once, before other threads exist.
// Source:  nothing acknowledged is lost: a change is durable before it is acknowledged.
#pragma once

namespace delayd {

void InstallLastWords();

}  // namespace delayd
