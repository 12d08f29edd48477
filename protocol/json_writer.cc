#include "protocol/json_writer.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdint>

#include "base/utf8.h"

#include <boost/json/serialize.hpp>

namespace delayd::protocol {
namespace {

// Above it Boost.JSON's way is the faster one.
constexpr size_t kShortMax = 256;

// What stands in JSON as it is. All our own names are, and most of what is short; names of a newer
// daemon's figures may be anything.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
}

bool IsShortAndPlain(std::string_view text) {
  return text.size() <= kShortMax && IsPlain(text);
}

void AppendQuoted(std::string_view plain, std::string* out) {
  *out += '"';
  *out += plain;
  *out += '"';
}

// Without a text of its own for what is short.
void AppendString(std::string_view text, std::string* out) {
  if (IsShortAndPlain(text)) {
    AppendQuoted(text, out);
  } else {
    *out += JsonString(text);
  }
}

// JSON lets DEL and the controls of C1 stand. Terminals obey them, and people read JSON on
// terminals.
bool IsHighControl(std::string_view json, size_t at) {
  const auto byte = [json](size_t i) { return static_cast<uint8_t>(json[i]); };
  return byte(at) == 0x7f || (byte(at) == 0xc2 && at + 1 < json.size() && byte(at + 1) < 0xa0);
}

std::string EscapeHighControls(std::string json) {
  // Two fast looks: most texts have neither byte.
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
  if (IsShortAndPlain(text)) {
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
  text_ += std::to_string(value);
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
