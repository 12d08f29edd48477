// base/option_words.h — prepares the words of a command line for CLI11, and formats them for its
// help.
//
// Errors:  none.
// Threads: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace delayd {

// "--key=", with a variable that is not set, has an empty value: CLI11 would take the next word as
// the value, so it is split into two words. `takes_value` knows options by name, such as "--key".
std::vector<std::string> WithEmptyValues(
    const std::vector<std::string>& words,
    const std::function<bool(const std::string& name)>& takes_value);

// "  --key KEY     what it is": `words` take `width` columns, or more if they are longer.
std::string HelpLine(std::string words, size_t width, std::string_view what);

}  // namespace delayd
