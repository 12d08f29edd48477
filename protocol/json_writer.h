// protocol/json_writer.h — JSON objects written member by member, in the order they are given.
//
// Errors:  none. Text that is not UTF-8 is written with U+FFFD for its bad bytes: the output is
// JSON whatever comes in. Payloads go through "payload_base64" instead.
// Threads: values.
// Cost:    Boost.JSON does the escaping; it stays out of this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace delayd::protocol {

bool IsUtf8(std::string_view bytes);
// With its quotes.
std::string JsonString(std::string_view text);

// Of what `to_json` makes of each element.
template <typename Elements, typename ToJson>
void AppendJsonArray(std::string* out, const Elements& elements, const ToJson& to_json) {
  *out += '[';
  const size_t first = out->size();
  for (const auto& element : elements) {
    *out += out->size() > first ? "," : "";
    *out += to_json(element);
  }
  *out += ']';
}

template <typename Elements, typename ToJson>
std::string JsonArray(const Elements& elements, const ToJson& to_json) {
  std::string array;
  AppendJsonArray(&array, elements, to_json);
  return array;
}

// {"NAME":[...],"next_cursor":"..."}; without a cursor it is the last page. It may have megabytes,
// so it is written into one text.
template <typename Elements, typename ToJson>
std::string JsonPage(std::string_view name,
                     const Elements& elements,
                     const ToJson& to_json,
                     std::string_view next_cursor) {
  std::string page = '{' + JsonString(name) + ':';
  AppendJsonArray(&page, elements, to_json);
  if (!next_cursor.empty()) {
    page += R"(,"next_cursor":)" + JsonString(next_cursor);
  }
  page += '}';
  return page;
}

class JsonObjectWriter {
 public:
  JsonObjectWriter();

  void String(std::string_view name, std::string_view value);
  void Number(std::string_view name, uint64_t value);
  void Bool(std::string_view name, bool value);
  // `json` is JSON already.
  void Raw(std::string_view name, std::string_view json);

  // The object. The writer is empty afterwards.
  std::string Take();

 private:
  void Name(std::string_view name);

  std::string text_;
};

}  // namespace delayd::protocol
