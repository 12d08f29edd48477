#include "protocol/json_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <vector>

#include "protocol/nearest.h"

namespace delayd::protocol {
namespace {

namespace ondemand = simdjson::ondemand;

// A parser keeps memory for the longest text that it has seen; above this size it is freed.
constexpr size_t kParserBytesKept = size_t{1} << 20;

Status MalformedJson(const std::string& why) {
  return InvalidArgument("malformed JSON: " + why, "invalid_json");
}

std::string Explain(simdjson::error_code error) {
  switch (error) {
    case simdjson::EMPTY:
      return "the text is empty; an object is {...}, an array [...]";
    case simdjson::UTF8_ERROR:
      return "it is not UTF-8; send bytes that are no text as payload_base64";
    case simdjson::UNCLOSED_STRING:
      return "a string is not closed";
    case simdjson::UNESCAPED_CHARS:
      return "a string holds a control character; escape it (\\n, \\u0000)";
    case simdjson::STRING_ERROR:
      return "a string holds a bad escape";
    case simdjson::NUMBER_ERROR:
      return "a number is malformed";
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      return "it does not end with its '}' or ']': that is missing, or something stands behind it";
    case simdjson::CAPACITY:
    case simdjson::MEMALLOC:
      return "it is too large";
    default:
      return "a value, ',' or ':' is missing or misplaced";
  }
}

Status FromSimdjson(simdjson::error_code error) {
  return MalformedJson(Explain(error));
}

std::string_view Trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  return text;
}

size_t SkipDigits(std::string_view text, size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    ++at;
  }
  return at;
}

// Checks the grammar only: a number in a payload may exceed any machine type and passes as text.
bool IsJsonNumber(std::string_view text) {
  size_t at = !text.empty() && text[0] == '-' ? 1 : 0;
  const size_t integer = at;
  at = SkipDigits(text, at);
  if (at == integer || (text[integer] == '0' && at > integer + 1)) {
    return false;
  }
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = at + 1;
    at = SkipDigits(text, fraction);
    if (at == fraction) {
      return false;
    }
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
      ++at;
    }
    const size_t exponent = at;
    at = SkipDigits(text, exponent);
    if (at == exponent) {
      return false;
    }
  }
  return at == text.size();
}

// The state of one read. A visitor that reads nested JSON gets a frame of its own.
struct Frame {
  ondemand::parser parser;
  std::vector<char> bytes;
};

class FrameLoan {
 public:
  FrameLoan() {
    if (Free().empty()) {
      frame_ = std::make_unique<Frame>();
    } else {
      frame_ = std::move(Free().back());
      Free().pop_back();
    }
  }

  ~FrameLoan() {
    if (frame_->bytes.capacity() <= kParserBytesKept) {
      Free().push_back(std::move(frame_));
    }
  }

  FrameLoan(const FrameLoan&) = delete;
  FrameLoan& operator=(const FrameLoan&) = delete;

  simdjson::error_code Open(std::string_view json, ondemand::document* document) {
    frame_->bytes.resize(json.size() + simdjson::SIMDJSON_PADDING);
    std::copy(json.begin(), json.end(), frame_->bytes.begin());
    const simdjson::padded_string_view padded(
        frame_->bytes.data(), json.size(), frame_->bytes.size());
    return frame_->parser.iterate(padded).get(*document);
  }

 private:
  static std::vector<std::unique_ptr<Frame>>& Free() {
    thread_local std::vector<std::unique_ptr<Frame>> frames;
    return frames;
  }

  std::unique_ptr<Frame> frame_;
};

JsonKind KindOf(ondemand::json_type type, std::string_view token) {
  switch (type) {
    case ondemand::json_type::array:
      return JsonKind::kArray;
    case ondemand::json_type::object:
      return JsonKind::kObject;
    case ondemand::json_type::string:
      return JsonKind::kString;
    case ondemand::json_type::number:
      return JsonKind::kNumber;
    default:  // boolean, null, and from simdjson 4 on anything else
      break;
  }
  return token == "null" ? JsonKind::kNull : JsonKind::kBool;
}

Status CheckToken(std::string_view token) {
  if (token == "null" || token == "true" || token == "false" || IsJsonNumber(token)) {
    return OkStatus();
  }
  return MalformedJson(Quoted(token) + " is no JSON value; strings stand in double quotes");
}

// By reference: copying each value on the stack took 40 % of the whole check.
Status CheckValue(ondemand::value& value, size_t depth);

Status CheckArray(ondemand::array array, size_t depth) {
  for (auto item : array) {
    ondemand::value element;
    if (const auto error = std::move(item).get(element); error != simdjson::SUCCESS) {
      return FromSimdjson(error);
    }
    DELAYD_RETURN_IF_ERROR(CheckValue(element, depth));
  }
  return OkStatus();
}

Status CheckObject(ondemand::object object, size_t depth) {
  for (auto item : object) {
    std::string_view name;
    if (const auto error = item.unescaped_key().get(name); error != simdjson::SUCCESS) {
      return FromSimdjson(error);
    }
    ondemand::field field;
    if (const auto error = std::move(item).get(field); error != simdjson::SUCCESS) {
      return FromSimdjson(error);
    }
    DELAYD_RETURN_IF_ERROR(CheckValue(field.value(), depth));
  }
  return OkStatus();
}

// The parser is lazy and does not check what nobody reads, so this reads everything.
Status CheckValue(ondemand::value& value, size_t depth) {
  if (depth >= kJsonDepthMax) {
    return MalformedJson("it is nested deeper than " + std::to_string(kJsonDepthMax) +
                         " levels; send it as a string");
  }
  ondemand::json_type type{};
  auto error = value.type().get(type);
  if (error == simdjson::SUCCESS && type == ondemand::json_type::array) {
    ondemand::array array;
    error = value.get_array().get(array);
    return error == simdjson::SUCCESS ? CheckArray(array, depth + 1) : FromSimdjson(error);
  }
  if (error == simdjson::SUCCESS && type == ondemand::json_type::object) {
    ondemand::object object;
    error = value.get_object().get(object);
    return error == simdjson::SUCCESS ? CheckObject(object, depth + 1) : FromSimdjson(error);
  }
  if (error == simdjson::SUCCESS && type == ondemand::json_type::string) {
    std::string_view text;
    error = value.get_string().get(text);
    return error == simdjson::SUCCESS ? OkStatus() : FromSimdjson(error);
  }
  return error == simdjson::SUCCESS ? CheckToken(Trim(value.raw_json_token()))
                                    : FromSimdjson(error);
}

// The raw text of an array or object, checked by a second pass over it.
Status ReadNested(ondemand::value value, JsonKind kind, std::string_view* text) {
  simdjson::error_code error = simdjson::SUCCESS;
  if (kind == JsonKind::kArray) {
    ondemand::array array;
    error = value.get_array().get(array);
    if (error == simdjson::SUCCESS) {
      error = array.raw_json().get(*text);
    }
  } else {
    ondemand::object object;
    error = value.get_object().get(object);
    if (error == simdjson::SUCCESS) {
      error = object.raw_json().get(*text);
    }
  }
  if (error != simdjson::SUCCESS) {
    return FromSimdjson(error);
  }
  *text = Trim(*text);
  FrameLoan frame;
  ondemand::document document;
  error = frame.Open(*text, &document);
  if (error != simdjson::SUCCESS) {
    return FromSimdjson(error);
  }
  ondemand::value root;
  error = document.get_value().get(root);
  return error == simdjson::SUCCESS ? CheckValue(root, 1) : FromSimdjson(error);
}

Status ReadValue(ondemand::value value, JsonValue* out) {
  ondemand::json_type type{};
  if (const auto error = value.type().get(type); error != simdjson::SUCCESS) {
    return FromSimdjson(error);
  }
  const std::string_view token = Trim(value.raw_json_token());
  out->kind = KindOf(type, token);
  out->text = token;
  switch (out->kind) {
    case JsonKind::kNull:
    case JsonKind::kBool:
    case JsonKind::kNumber:
      return CheckToken(token);
    case JsonKind::kArray:
    case JsonKind::kObject:
      return ReadNested(value, out->kind, &out->text);
    case JsonKind::kString:
      break;
  }
  const auto error = value.get_string().get(out->text);
  return error == simdjson::SUCCESS ? OkStatus() : FromSimdjson(error);
}

Status CheckEnd(ondemand::document& document) {
  // The parser reports "out of bounds" for a text that was read to its end.
  if (document.current_location().error() == simdjson::OUT_OF_BOUNDS) {
    return OkStatus();
  }
  return MalformedJson("something follows its end; send one value");
}

Status CheckRoot(ondemand::document& document, ondemand::json_type wanted) {
  ondemand::json_type type{};
  if (const auto error = document.type().get(type); error != simdjson::SUCCESS) {
    return FromSimdjson(error);
  }
  if (type != wanted) {
    // The parser tells the type from the first letter alone.
    const bool is_word = type == ondemand::json_type::null || type == ondemand::json_type::boolean;
    std::string_view token;
    if (is_word && document.raw_json_token().get(token) == simdjson::SUCCESS) {
      token = Trim(token);
      DELAYD_RETURN_IF_ERROR(CheckToken(token));
    }
    return MalformedJson("it is " + std::string(JsonKindName(KindOf(type, token))) + ", not " +
                         std::string(JsonKindName(KindOf(wanted, {}))));
  }
  return OkStatus();
}

// One text and the array or object at its root, for as long as it is read.
template <typename Container>
class Root {
 public:
  Status Open(std::string_view json, ondemand::json_type wanted) {
    if (json.starts_with("\xef\xbb\xbf")) {  // editors do not show it
      return MalformedJson("it begins with a byte order mark; send UTF-8 without one");
    }
    if (const auto error = frame_.Open(json, &document_); error != simdjson::SUCCESS) {
      return FromSimdjson(error);
    }
    DELAYD_RETURN_IF_ERROR(CheckRoot(document_, wanted));
    const auto error = document_.get(container_);
    return error == simdjson::SUCCESS ? OkStatus() : FromSimdjson(error);
  }

  Container& container() { return container_; }

  Status CheckEnd() { return protocol::CheckEnd(document_); }

 private:
  FrameLoan frame_;
  ondemand::document document_;
  Container container_;
};

}  // namespace

std::string_view JsonKindName(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "true or false";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  DELAYD_CHECK(false);
}

Status ReadJsonObject(std::string_view json, const JsonMemberVisitor& visit) {
  Root<ondemand::object> root;
  DELAYD_RETURN_IF_ERROR(root.Open(json, ondemand::json_type::object));
  std::vector<std::string_view> seen;
  for (auto item : root.container()) {
    std::string_view name;
    if (const auto error = item.unescaped_key().get(name); error != simdjson::SUCCESS) {
      return FromSimdjson(error);
    }
    ondemand::field field;
    if (const auto error = std::move(item).get(field); error != simdjson::SUCCESS) {
      return FromSimdjson(error);
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      return InvalidArgument("member " + Quoted(name) + ": stands twice; keep one",
                             "duplicate_member");
    }
    if (seen.size() == kJsonMembersMax) {
      return MalformedJson("it has more than " + std::to_string(kJsonMembersMax) + " members");
    }
    seen.push_back(name);
    JsonValue value;
    DELAYD_RETURN_IF_ERROR(ReadValue(field.value(), &value));
    DELAYD_RETURN_IF_ERROR(visit(name, value));
  }
  return root.CheckEnd();
}

Status ReadJsonArray(std::string_view json, const JsonElementVisitor& visit) {
  Root<ondemand::array> root;
  DELAYD_RETURN_IF_ERROR(root.Open(json, ondemand::json_type::array));
  for (auto item : root.container()) {
    ondemand::value element;
    if (const auto error = std::move(item).get(element); error != simdjson::SUCCESS) {
      return FromSimdjson(error);
    }
    JsonValue value;
    DELAYD_RETURN_IF_ERROR(ReadValue(element, &value));
    DELAYD_RETURN_IF_ERROR(visit(value));
  }
  return root.CheckEnd();
}

StatusOr<uint64_t> JsonToUint(const JsonValue& value, uint64_t max, uint64_t min) {
  uint64_t number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (value.kind != JsonKind::kNumber || error != std::errc() || stop != end || number > max ||
      number < min) {
    const std::string_view read =
        value.kind == JsonKind::kNumber ? value.text : JsonKindName(value.kind);
    return InvalidArgument("is " + std::string(read.substr(0, 40)) +
                               "; write a whole number from " + std::to_string(min) + " to " +
                               std::to_string(max),
                           "invalid_member");
  }
  return number;
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

StatusOr<std::string> JsonToString(const JsonValue& value) {
  if (value.kind != JsonKind::kString) {
    return InvalidArgument(
        "is " + std::string(JsonKindName(value.kind)) + "; write a string in double quotes",
        "invalid_member");
  }
  return std::string(value.text);
}

StatusOr<bool> JsonToBool(const JsonValue& value) {
  if (value.kind != JsonKind::kBool) {
    return InvalidArgument("is " + std::string(JsonKindName(value.kind)) + "; write true or false",
                           "invalid_member");
  }
  return value.text == "true";
}

}  // namespace delayd::protocol
