// protocol/json_reader.h — one JSON text read strictly, member by member.
//
// What:    the whole text is checked (RFC 8259, UTF-8, depth, nothing behind it) by the time a
// member's value is handed to the visitor; a member that stands twice is refused.
// Errors:  kInvalidArgument "invalid_json" with the reason; the first error of the visitor ends the
// reading and is returned. Members before an error may have been visited.
// Threads: pure functions; each thread has its own parsers inside. A visitor may read on inside.
// Cost:    one pass of simdjson, which stays out of this header, over the text, and one more over
// arrays and objects within it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::protocol {

inline constexpr size_t kJsonDepthMax = 128;
// Bounds the search for members that stand twice.
inline constexpr size_t kJsonMembersMax = 256;

enum class JsonKind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

// "a number", "null" and so on, for messages.
std::string_view JsonKindName(JsonKind kind);

struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  // kString: the bytes it stands for; else the JSON text itself. Lives as long as the visit.
  std::string_view text;
};

using JsonMemberVisitor = std::function<Status(std::string_view name, const JsonValue& value)>;
using JsonElementVisitor = std::function<Status(const JsonValue& value)>;

// Whether a text says nothing. It is no JSON; requests that need no members take it for none.
bool IsBlank(std::string_view text);

Status ReadJsonObject(std::string_view json, const JsonMemberVisitor& visit);
Status ReadJsonArray(std::string_view json, const JsonElementVisitor& visit);

// The value as a whole number from `min` to `max`; a message that begins with "is ..." otherwise.
StatusOr<uint64_t> JsonToUint(const JsonValue& value, uint64_t max, uint64_t min = 0);
// A string's bytes; a message that begins with "is ..." otherwise.
StatusOr<std::string> JsonToString(const JsonValue& value);
StatusOr<bool> JsonToBool(const JsonValue& value);

}  // namespace delayd::protocol
