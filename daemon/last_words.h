// daemon/last_words.h — the line that the daemon ends with where no Status can be returned
// (base/last_words.h): in its log, with the limits that it may have run into, and kExitFailed.
//
// Errors:  none.
// Threads: InstallLastWords once, before other threads exist.
// Source:  nothing acknowledged is lost: it is durable before it is told.
#pragma once

namespace delayd {

void InstallLastWords();

}  // namespace delayd
