#include "protocol/json_members.h"

#include <limits>
#include <vector>

#include "base/coding.h"
#include "protocol/duration.h"
#include "protocol/nearest.h"
#include "protocol/timestamp.h"

namespace delayd::protocol {

Status InMember(std::string_view name, const Status& status) {
  return status.ok() ? OkStatus() : status.WithContext("member " + Quoted(name));
}

Status NullRefused(std::string_view name, std::string_view cure) {
  return InMember(name, InvalidArgument("is null; " + std::string(cure), "invalid_member"));
}

Status UnknownMember(std::string_view name, std::span<const std::string_view> known) {
  std::string advice = DidYouMean(name, known);
  if (advice.empty()) {
    advice = known.size() == 1 ? "; the only member is" : "; the members are";
    for (const std::string_view member : known) {
      advice += (member == known.front() ? " " : ", ") + std::string(member);
    }
  }
  return InvalidArgument("member " + Quoted(name) + ": is unknown" + advice, "unknown_member");
}

Status ReadAnswer(std::string_view json,
                  std::initializer_list<std::string_view> required,
                  const JsonMemberVisitor& visit) {
  std::vector<std::string_view> missing(required);
  DELAYD_RETURN_IF_ERROR(ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) {
    if (value.kind != JsonKind::kNull) {
      std::erase(missing, name);
    }
    return visit(name, value);
  }));
  return missing.empty()
             ? OkStatus()
             : InMember(missing.front(), InvalidArgument("is missing", "invalid_member"));
}

Status SetString(std::string_view name, const JsonValue& value, std::string* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  StatusOr<std::string> text = JsonToString(value);
  if (!text.ok()) {
    return InMember(name, text.status());
  }
  *out = std::move(text).value();
  return OkStatus();
}

Status SetUint64(std::string_view name, const JsonValue& value, uint64_t max, uint64_t* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  const StatusOr<uint64_t> number = JsonToUint(value, max);
  if (!number.ok()) {
    return InMember(name, number.status());
  }
  *out = *number;
  return OkStatus();
}

Status SetUint32(std::string_view name, const JsonValue& value, uint32_t* out) {
  uint64_t number = *out;
  DELAYD_RETURN_IF_ERROR(SetUint64(name, value, std::numeric_limits<uint32_t>::max(), &number));
  *out = static_cast<uint32_t>(number);
  return OkStatus();
}

Status SetEach(std::string_view name, const JsonValue& value, const JsonElementVisitor& visit) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  if (value.kind != JsonKind::kArray) {  // a string's text may look like an array
    return InMember(name,
                    InvalidArgument("is " + std::string(JsonKindName(value.kind)) +
                                        "; write an array, even of one",
                                    "invalid_member"));
  }
  return InMember(name, ReadJsonArray(value.text, visit));
}

Status SetBool(std::string_view name, const JsonValue& value, bool* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  const StatusOr<bool> flag = JsonToBool(value);
  if (!flag.ok()) {
    return InMember(name, flag.status());
  }
  *out = *flag;
  return OkStatus();
}

Status SetUint32(std::string_view name, const JsonValue& value, std::optional<uint32_t>* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  return SetUint32(name, value, &out->emplace());
}

Status SetState(std::string_view name, const JsonValue& value, JobState* out) {
  std::string text(JobStateName(*out));
  DELAYD_RETURN_IF_ERROR(SetString(name, value, &text));
  const std::optional<JobState> state = ParseJobState(text);
  if (!state.has_value()) {
    return InMember(
        name,
        InvalidArgument("is " + Quoted(text) + ", which is no state of a job", "invalid_member"));
  }
  *out = *state;
  return OkStatus();
}

Status SetFingerprint(std::string_view name, const JsonValue& value, uint64_t* out) {
  std::string text = FormatFingerprint(*out);
  DELAYD_RETURN_IF_ERROR(SetString(name, value, &text));
  const std::optional<uint64_t> fingerprint = ParseFingerprint(text);
  if (!fingerprint.has_value()) {
    return InMember(name,
                    InvalidArgument("is " + Quoted(text) +
                                        "; leave it as the export wrote it, 16 hexadecimal digits",
                                    "invalid_member"));
  }
  *out = *fingerprint;
  return OkStatus();
}

Status SetDuration(std::string_view name, const JsonValue& value, Millis* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  if (value.kind == JsonKind::kNumber) {
    return InMember(name,
                    InvalidArgument("is the number " + std::string(value.text.substr(0, 40)) +
                                        "; write a string with a unit, like \"90s\" or \"30m\"",
                                    "invalid_duration"));
  }
  const StatusOr<std::string> text = JsonToString(value);
  if (!text.ok()) {
    return InMember(name, text.status());
  }
  const StatusOr<Millis> duration = ParseDuration(*text);
  if (!duration.ok()) {
    return InMember(name, duration.status());
  }
  *out = *duration;
  return OkStatus();
}

Status SetDuration(std::string_view name, const JsonValue& value, std::optional<Millis>* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  return SetDuration(name, value, &out->emplace());
}

Status SetTime(std::string_view name, const JsonValue& value, WallTime* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  if (value.kind == JsonKind::kNumber) {
    return InMember(name,
                    InvalidArgument("is the number " + std::string(value.text.substr(0, 40)) +
                                        "; write a string like \"2027-01-01T09:00:00Z\"",
                                    "invalid_time"));
  }
  const StatusOr<std::string> text = JsonToString(value);
  if (!text.ok()) {
    return InMember(name, text.status());
  }
  const StatusOr<WallTime> time = ParseTimestamp(*text);
  if (!time.ok()) {
    return InMember(name, time.status());
  }
  *out = *time;
  return OkStatus();
}

Status SetTime(std::string_view name, const JsonValue& value, std::optional<WallTime>* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  return SetTime(name, value, &out->emplace());
}

Status DueMembers::Set(std::string_view name, const JsonValue& value) {
  if (value.kind == JsonKind::kNull) {
    null_ = name;
    return OkStatus();
  }
  return name == "due" ? SetTime(name, value, &due_) : SetDuration(name, value, &delay_);
}

StatusOr<std::optional<DueSpec>> DueMembers::Take() const {
  if (delay_.has_value() && due_.has_value()) {
    return InvalidArgument(
        "members 'delay' and 'due': both are given; a job is due after a delay or at a time, keep "
        "one",
        "invalid_member");
  }
  if (delay_.has_value()) {
    return std::optional<DueSpec>(DueAfter{*delay_});
  }
  if (due_.has_value()) {
    return std::optional<DueSpec>(DueAt{*due_});
  }
  if (!null_.empty()) {
    return NullRefused(null_, "say when the job is due, or leave the member out");
  }
  return std::optional<DueSpec>();
}

}  // namespace delayd::protocol
