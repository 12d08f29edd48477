// base/last_words.h — the last line of a program that must end where no Status can be returned: no
// thread could be started, or no memory is left.
//
// What:    an uncaught exception in any thread, RocksDB's included, is reported together with
//          advice, and ends the process. Anything other than a lack of threads or memory is a bug
//          of ours: it is reported too, and aborts.
// Errors:  none.
// Threads: InstallLastWords once, before other threads exist.
// Cost:    nothing until then.
// Source:  std::set_terminate.
#pragma once

#include <string_view>

namespace delayd {

// The texts must outlive the process's other threads: use literals.
struct LastWords {
  std::string_view no_thread;
  std::string_view no_memory;
  std::string_view mistake;
  int exit_code = 1;  // unless it is our bug
  // `cause`: the text of the exception.
  void (*tell)(std::string_view message, std::string_view cause) = nullptr;
};

void InstallLastWords(const LastWords& words);

// Writes "MESSAGE: CAUSE" to stderr.
void TellOnStderr(std::string_view message, std::string_view cause);

}  // namespace delayd
