// protocol/json_reader.h — reads one JSON text strictly, member by member.
//
// What:    the text is checked in full (RFC 8259, UTF-8, depth, nothing after its end), each value
// before it is handed to the visitor. A duplicate member is refused.
// Errors:  kInvalidArgument "invalid_json" with the reason; the first error of the visitor ends the
// reading and is returned. Members before an error may have been visited.
// Threads: pure functions; each thread has its own parsers. A visitor may itself read nested JSON.
// Cost:    one pass of simdjson over the text, and one more over arrays and objects within it.
// simdjson stays out of this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::protocol {

inline constexpr size_t kJsonDepthMax = 128;
// Bounds the search for duplicate members.
inline constexpr size_t kJsonMembersMax = 256;

enum class JsonKind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

// "a number", "null" and so on, for messages.
std::string_view JsonKindName(JsonKind kind);

struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  // kString: the unescaped bytes; otherwise the JSON text itself. Valid during the visit only.
  std::string_view text;
};

using JsonMemberVisitor = std::function<Status(std::string_view name, const JsonValue& value)>;
using JsonElementVisitor = std::function<Status(const JsonValue& value)>;

// Whether a text is empty or white space. That is not JSON, but a request whose members are all
// optional accepts it.
bool IsBlank(std::string_view text);

Status ReadJsonObject(std::string_view json, const JsonMemberVisitor& visit);
Status ReadJsonArray(std::string_view json, const JsonElementVisitor& visit);

// The value as a whole number from `min` to `max`; otherwise an error that begins with "is ...".
StatusOr<uint64_t> JsonToUint(const JsonValue& value, uint64_t max, uint64_t min = 0);
// A string's bytes; otherwise an error that begins with "is ...".
StatusOr<std::string> JsonToString(const JsonValue& value);
StatusOr<bool> JsonToBool(const JsonValue& value);

}  // namespace delayd::protocol
