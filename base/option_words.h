// base/option_words.h — the words of a command line as CLI11 takes them rightly, and as its help
// lists them.
//
// Errors:  none.
// Threads: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace delayd {

// "--key=", of a variable that is not set, has an empty value: CLI11 would take the next word for
// it, so it becomes two words. `takes_value` knows options by their name, such as "--key".
std::vector<std::string> WithEmptyValues(
    const std::vector<std::string>& words,
    const std::function<bool(const std::string& name)>& takes_value);

// "  --key KEY     what it is": `words` take `width` columns, or more where they are longer.
std::string HelpLine(std::string words, size_t width, std::string_view what);

}  // namespace delayd
