// protocol/json_writer.h — writes JSON objects member by member, in the order given.
//
// Errors:  none. Bad bytes of text that is not UTF-8 become U+FFFD, so the output is JSON whatever
// comes in. Such payloads go through "payload_base64" instead.
// Threads: values.
// Cost:    Boost.JSON does the escaping; it stays out of this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace delayd::protocol {

bool IsUtf8(std::string_view bytes);
// Quotes included.
std::string JsonString(std::string_view text);

// `to_json` writes each element.
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

// {"NAME":[...],"next_cursor":"..."}; the last page has no cursor. A page may be megabytes long, so
// it is built in a single string.
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
  // `json` is written as it is.
  void Raw(std::string_view name, std::string_view json);

  // Returns the finished object and leaves the writer empty.
  std::string Take();

 private:
  void Name(std::string_view name);

  std::string text_;
};

}  // namespace delayd::protocol
