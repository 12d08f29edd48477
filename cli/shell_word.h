// cli/shell_word.h — a name or path in a command that people copy into their shell.
//
// What:    unchanged if a shell would leave it alone, else in single quotes: a queue may be named
//          "a;b".
// Threads: pure function.
#pragma once

#include <string>
#include <string_view>

namespace delayd::cli {

std::string ShellWord(std::string_view text);

}  // namespace delayd::cli
