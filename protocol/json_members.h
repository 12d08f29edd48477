// protocol/json_members.h — one member of an object into one field, with its name in the error;
// members that several objects have.
//
// Private to the room. Null leaves the field as it is, where nothing else is said.
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

// Of a number that has no bound but its size.
inline constexpr uint64_t kCountMax = std::numeric_limits<uint64_t>::max();

Status InMember(std::string_view name, const Status& status);
// Where a null that stands for "absent" would do what nobody meant.
Status NullRefused(std::string_view name, std::string_view cure);
Status UnknownMember(std::string_view name, std::span<const std::string_view> known);

// An answer of the daemon, of which the `required` members must be there: what another server says
// may be an object, too.
Status ReadAnswer(std::string_view json,
                  std::initializer_list<std::string_view> required,
                  const JsonMemberVisitor& visit);

Status SetString(std::string_view name, const JsonValue& value, std::string* out);
Status SetUint64(std::string_view name, const JsonValue& value, uint64_t max, uint64_t* out);
Status SetUint32(std::string_view name, const JsonValue& value, uint32_t* out);
Status SetUint32(std::string_view name, const JsonValue& value, std::optional<uint32_t>* out);
// Of an array: `visit` for each element.
Status SetEach(std::string_view name, const JsonValue& value, const JsonElementVisitor& visit);

// Of an array of objects that `parse` reads.
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

// The due time that members "delay" and "due" give.
class DueMembers {
 public:
  static bool Has(std::string_view name) { return name == "delay" || name == "due"; }

  Status Set(std::string_view name, const JsonValue& value);
  // An error when both are there, and when the only one is null: serializers make that of a time
  // that could not be read, and the job would be due at once.
  StatusOr<std::optional<DueSpec>> Take() const;

 private:
  std::optional<Millis> delay_;
  std::optional<WallTime> due_;
  std::string null_;  // the name of one that is null
};

void WriteReschedule(const RescheduleRequest& request, JsonObjectWriter* writer);

}  // namespace delayd::protocol
