#include "protocol/json_writer.h"

#include <simdjson.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "base/utf8.h"

#include <boost/json/serialize.hpp>

namespace delayd::protocol {
namespace {

// Tests eight bytes at once for one that JSON must escape. Each term sets the high bit where it
// finds one; carries and borrows come only from such a byte.
bool NeedsEscape(uint64_t eight) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  const uint64_t above_tilde = eight | (eight + kOnes);
  const uint64_t below_space = eight - kOnes * ' ';
  const uint64_t quote = (eight ^ (kOnes * '"')) - kOnes;
  const uint64_t backslash = (eight ^ (kOnes * '\\')) - kOnes;
  return ((above_tilde | below_space | quote | backslash) & (kOnes * 0x80)) != 0;
}

// Text that needs no escape: ASCII without controls, quotes and backslashes. All our own names and
// most of what clients send are plain; names of a newer daemon's figures may be anything.
bool IsPlain(std::string_view text) {
  uint64_t eight = 0;
  while (text.size() >= sizeof eight) {
    std::memcpy(&eight, text.data(), sizeof eight);
    if (NeedsEscape(eight)) {
      return false;
    }
    text.remove_prefix(sizeof eight);
  }
  std::memset(&eight, ' ', sizeof eight);
  text.copy(reinterpret_cast<char*>(&eight), text.size());
  return !NeedsEscape(eight);
}

void AppendQuoted(std::string_view plain, std::string* out) {
  *out += '"';
  *out += plain;
  *out += '"';
}

// Appends plain text without a temporary string.
void AppendString(std::string_view text, std::string* out) {
  if (IsPlain(text)) {
    AppendQuoted(text, out);
  } else {
    *out += JsonString(text);
  }
}

// DEL and the C1 controls. JSON allows them unescaped, but terminals obey them, and people read
// JSON on terminals.
bool IsHighControl(std::string_view json, size_t at) {
  const auto byte = [json](size_t i) { return static_cast<uint8_t>(json[i]); };
  return byte(at) == 0x7f || (byte(at) == 0xc2 && at + 1 < json.size() && byte(at + 1) < 0xa0);
}

std::string EscapeHighControls(std::string json) {
  // Two fast searches: most texts have neither byte.
  if (json.find('\x7f') == std::string::npos && json.find('\xc2') == std::string::npos) {
    return json;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    if (!IsHighControl(json, i)) {
      out += json[i];
      continue;
    }
    i += json[i] == '\x7f' ? 0U : 1U;
    const auto point = static_cast<uint8_t>(json[i]);
    out += "\\u00";
    out += {kHex[point >> 4U], kHex[point & 0xfU]};
  }
  return out;
}

}  // namespace

bool IsUtf8(std::string_view bytes) {
  return simdjson::validate_utf8(bytes.data(), bytes.size());
}

std::string JsonString(std::string_view text) {
  if (IsPlain(text)) {
    std::string quoted;
    quoted.reserve(text.size() + 2);
    AppendQuoted(text, &quoted);
    return quoted;
  }
  if (!IsUtf8(text)) {
    return JsonString(ToUtf8(text));
  }
  return EscapeHighControls(
      boost::json::serialize(boost::json::string_view(text.data(), text.size())));
}

JsonObjectWriter::JsonObjectWriter() {
  constexpr size_t kUsualBytes = 1024;  // a job with a payload of a few hundred bytes
  text_.reserve(kUsualBytes);
  text_ = '{';
}

void JsonObjectWriter::Name(std::string_view name) {
  if (text_.size() > 1) {
    text_ += ',';
  }
  AppendString(name, &text_);
  text_ += ':';
}

void JsonObjectWriter::String(std::string_view name, std::string_view value) {
  Name(name);
  AppendString(value, &text_);
}

void JsonObjectWriter::Number(std::string_view name, uint64_t value) {
  Name(name);
  std::array<char, 20> digits;
  const char* const end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  text_.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

void JsonObjectWriter::Bool(std::string_view name, bool value) {
  Name(name);
  text_ += value ? "true" : "false";
}

void JsonObjectWriter::Raw(std::string_view name, std::string_view json) {
  Name(name);
  text_ += json;
}

std::string JsonObjectWriter::Take() {
  std::string out = std::move(text_);
  out += '}';
  text_ = "{";
  return out;
}

}  // namespace delayd::protocol
