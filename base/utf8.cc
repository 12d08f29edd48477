#include "base/utf8.h"

#include <cstdint>
#include <cstdio>

namespace delayd {

size_t Utf8Length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto follows = [&](size_t i, uint8_t from, uint8_t to) {
    return i < text.size() && byte(i) >= from && byte(i) <= to;
  };
  if (text.empty()) {
    return 0;
  }
  const uint8_t first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return follows(1, 0x80, 0xbf) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {
    const uint8_t from = first == 0xe0 ? 0xa0 : 0x80;
    const uint8_t to = first == 0xed ? 0x9f : 0xbf;
    return follows(1, from, to) && follows(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const uint8_t from = first == 0xf0 ? 0x90 : 0x80;
    const uint8_t to = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, from, to) && follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

namespace {

// Characters that change the direction of the text after them (U+202A to U+202E, U+2066 to U+2069)
// or end the line (U+2028, U+2029): with them, one key could look like another.
bool TurnsText(std::string_view character) {
  return (character >= "\u2028" && character <= "\u202e") ||
         (character >= "\u2066" && character <= "\u2069");
}

}  // namespace

size_t PrintableLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const size_t length = Utf8Length(text);
  if (TurnsText(text.substr(0, length))) {
    return 0;
  }
  const bool control = length == 1 ? byte(0) < 0x20 || byte(0) == 0x7f
                                   : length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
  return control ? 0 : length;
}

std::string EscapeControls(std::string_view text, bool keep_lines) {
  std::string out;
  while (!text.empty()) {
    size_t length = PrintableLength(text);
    if (length == 0 && keep_lines && (text.front() == '\n' || text.front() == '\t')) {
      length = 1;
    }
    if (length > 0) {
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    char escaped[5];
    std::snprintf(escaped,
                  sizeof escaped,
                  "\\x%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    out += escaped;
    text.remove_prefix(1);
  }
  return out;
}

std::string Printable(std::string_view text) {
  constexpr size_t kBytesMax = 64;
  std::string out = EscapeControls(Utf8Front(text, kBytesMax));
  return text.size() > kBytesMax ? out + "..." : out;
}

bool IsShortUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

std::string ToUtf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    out += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string_view Utf8Front(std::string_view text, size_t bytes_max) {
  const auto continues = [text](size_t i) {
    return (static_cast<uint8_t>(text[i]) & 0xc0) == 0x80;
  };
  if (text.size() <= bytes_max) {
    return text;
  }
  size_t end = bytes_max;
  while (end > 0 && bytes_max - end < 3 && continues(end)) {
    --end;
  }
  // Text that is not UTF-8 has no characters to keep whole.
  return text.substr(0, continues(end) ? bytes_max : end);
}

}  // namespace delayd
