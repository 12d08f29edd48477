// cli/synonyms.h — our words for those of other job queues, for "did you mean".
//
// Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace delayd::cli {

// Ends a message about an unknown word: suggests our word for one that beanstalkd's clients, cloud
// queues or similar command lines use, the nearest known word, or the only one that it begins.
// Empty when none of `known` fits. A known word in capitals is an argument, not an option.
std::string Suggestion(std::string_view word, std::span<const std::string_view> known);

}  // namespace delayd::cli
