// base/utf8.h — whether bytes are UTF-8, for short texts, and where such a text may be cut.
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

// Of the character at the front; 0: there is none.
size_t Utf8Length(std::string_view text);

// The same of what may stand in a line of text; 0: no UTF-8, or a control, of which some terminals
// obey C1 too.
size_t PrintableLength(std::string_view text);

// All else as \xNN; `keep_lines` lets newlines and tabs through.
std::string EscapeControls(std::string_view text, bool keep_lines = false);

// Text of others as it may stand in a message: its front, without controls that would let it forge
// further lines.
std::string Printable(std::string_view text);

bool IsShortUtf8(std::string_view text);

// U+FFFD stands for each byte that belongs to no character.
std::string ToUtf8(std::string_view text);

// The front of a text, of at most so many bytes: no character of it is cut in two.
std::string_view Utf8Front(std::string_view text, size_t bytes_max);

}  // namespace delayd
