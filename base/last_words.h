// base/last_words.h — the line that a program ends with where no Status can be returned: no thread
// to be had, no memory left.
//
// What:    an exception that nobody catches, in whatever thread, RocksDB's too, is told with what
//          to do, and ends the process. What is no lack of threads or memory is a mistake of ours:
//          told too, and an abort.
// Errors:  none.
// Threads: InstallLastWords once, before other threads exist.
// Cost:    nothing until then.
// Source:  std::set_terminate.
#pragma once

#include <string_view>

namespace delayd {

// The texts must outlive the process' other threads: literals.
struct LastWords {
  std::string_view no_thread;
  std::string_view no_memory;
  std::string_view mistake;
  int exit_code = 1;  // where it is no mistake
  // `cause`: what the exception says.
  void (*tell)(std::string_view message, std::string_view cause) = nullptr;
};

void InstallLastWords(const LastWords& words);

// Writes "MESSAGE: CAUSE" to stderr.
void TellOnStderr(std::string_view message, std::string_view cause);

}  // namespace delayd
