// protocol/json_members.h — reads one member of an object into one field, with the member's name in
// the error; and the members that several objects share.
//
// Private to the room. Unless stated otherwise, null leaves the field as it is.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"
#include "protocol/job_json.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {

// The bound of a number that is limited only by its type.
inline constexpr uint64_t kCountMax = std::numeric_limits<uint64_t>::max();

Status InMember(std::string_view name, const Status& status);
// Refuses a null where taking it for "absent" would do something that nobody meant.
Status NullRefused(std::string_view name, std::string_view cure);
Status UnknownMember(std::string_view name, std::span<const std::string_view> known);

// Reads an answer of the daemon. The `required` members must be present, because another server may
// answer with a JSON object too.
Status ReadAnswer(std::string_view json,
                  std::initializer_list<std::string_view> required,
                  const JsonMemberVisitor& visit);

Status SetString(std::string_view name, const JsonValue& value, std::string* out);
Status SetUint64(std::string_view name, const JsonValue& value, uint64_t max, uint64_t* out);
Status SetUint32(std::string_view name, const JsonValue& value, uint32_t* out);
Status SetUint32(std::string_view name, const JsonValue& value, std::optional<uint32_t>* out);
// Calls `visit` for each element of an array.
Status SetEach(std::string_view name, const JsonValue& value, const JsonElementVisitor& visit);

// Reads an array of objects, each with `parse`.
template <typename T>
Status SetObjects(std::string_view name,
                  const JsonValue& value,
                  StatusOr<T> (*parse)(std::string_view json),
                  std::vector<T>* out) {
  return SetEach(name, value, [parse, out](const JsonValue& element) -> Status {
    DELAYD_ASSIGN_OR_RETURN(T object, parse(element.text));
    out->push_back(std::move(object));
    return OkStatus();
  });
}

Status SetBool(std::string_view name, const JsonValue& value, bool* out);
Status SetDuration(std::string_view name, const JsonValue& value, Millis* out);
Status SetDuration(std::string_view name, const JsonValue& value, std::optional<Millis>* out);
Status SetTime(std::string_view name, const JsonValue& value, WallTime* out);
Status SetTime(std::string_view name, const JsonValue& value, std::optional<WallTime>* out);

Status SetState(std::string_view name, const JsonValue& value, JobState* out);
Status SetFingerprint(std::string_view name, const JsonValue& value, uint64_t* out);

// The due time given by the members "delay" and "due".
class DueMembers {
 public:
  static bool Has(std::string_view name) { return name == "delay" || name == "due"; }

  Status Set(std::string_view name, const JsonValue& value);
  // An error when both are given, or when the only one is null: serializers write null for a time
  // that could not be parsed, and the job would be due at once.
  StatusOr<std::optional<DueSpec>> Take() const;

 private:
  std::optional<Millis> delay_;
  std::optional<WallTime> due_;
  std::string null_;  // the name of the member that was null
};

void WriteReschedule(const RescheduleRequest& request, JsonObjectWriter* writer);

}  // namespace delayd::protocol
