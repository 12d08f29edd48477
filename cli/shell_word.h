// cli/shell_word.h — a name or path in a command that people copy into their shell.
//
// What:    as it is where a shell leaves it alone, else in single quotes: queues may be named
//          "a;b".
// Threads: pure function.
#pragma once

#include <string>
#include <string_view>

namespace delayd::cli {

std::string ShellWord(std::string_view text);

}  // namespace delayd::cli
