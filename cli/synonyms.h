// cli/synonyms.h — what the words of other queues are called here, for "did you mean".
//
// Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace delayd::cli {

// To end a message about an unknown word with: what it is called in beanstalkd's clients, cloud
// queues or command lines of that kind, the known word nearest to it, or the one it begins.
// Nothing when none of `known` fits. A known word in capitals is an argument and not an option.
std::string Suggestion(std::string_view word, std::span<const std::string_view> known);

}  // namespace delayd::cli
