// protocol/nearest.h — the known word that was probably meant, for "did you mean" in messages.
//
// Errors:  none; empty when nothing is near enough.
// Threads: pure functions.
// Cost:    O(words * length^2), for messages only.
// Source:  optimal string alignment distance: Damerau's four typing errors, at most one per place.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace delayd::protocol {

// The nearest word of `known` whose distance from `word` is at most a third of the letters; empty
// when there is none.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> known);

// "; did you mean 'delay'?" or nothing, to end a message with.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> known);

// Text that a client sent, made printable and put in single quotes.
std::string Quoted(std::string_view text);

}  // namespace delayd::protocol
