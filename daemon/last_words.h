// daemon/last_words.h — the line that the daemon ends with where no Status can be returned: no
// thread to be had, no memory left.
//
// What:    an exception that nobody catches, in whatever thread, RocksDB's too, is told with the
//          limit that it ran into, and ends the process with kExitFailed. What is no lack of
//          threads or memory is a mistake of ours: told too, and an abort.
// Errors:  none.
// Threads: InstallLastWords once, before other threads exist.
// Cost:    nothing until then.
// Source:  std::set_terminate. Nothing acknowledged is lost: it is durable before it is told.
#pragma once

namespace delayd {

void InstallLastWords();

}  // namespace delayd
