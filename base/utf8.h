// base/utf8.h — checks whether short texts are UTF-8, and finds where they may be cut.
//
// What:    protocol/json_writer.h has a faster one for payloads.
// Errors:  none.
// Threads: pure functions.
// Source:  RFC 3629, section 4: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace delayd {

// The length in bytes of the character at the front; 0: there is none.
size_t Utf8Length(std::string_view text);

// The same for a character that may appear in a line of text; 0: not UTF-8, a control character (C1
// included, which some terminals obey), or one that ends the line or turns the text's direction.
size_t PrintableLength(std::string_view text);

// Everything else becomes \xNN; `keep_lines` lets newlines and tabs through.
std::string EscapeControls(std::string_view text, bool keep_lines = false);

// Makes text from others fit for a message: its front, without controls that could forge further
// lines.
std::string Printable(std::string_view text);

bool IsShortUtf8(std::string_view text);

// Replaces each byte that belongs to no character by U+FFFD.
std::string ToUtf8(std::string_view text);

// The front of a text, at most this many bytes, without cutting a character in two.
std::string_view Utf8Front(std::string_view text, size_t bytes_max);

}  // namespace delayd
