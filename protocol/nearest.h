// protocol/nearest.h — the known word that was probably meant, for "did you mean" in messages.
//
// Errors:  none; nothing near enough is an empty answer.
// Threads: pure functions.
// Cost:    O(words * length^2), for messages only.
// Source:  optimal string alignment distance: Damerau's four slips, each at most once in a place.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace delayd::protocol {

// The word of `known` within a third of its letters of `word`; empty when none is.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> known);

// "; did you mean 'delay'?" or nothing, to end a message with.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> known);

// Printable text of a client, in single quotes.
std::string Quoted(std::string_view text);

}  // namespace delayd::protocol
