// Requests about whole queues: pause, and kick by number.
#include <array>

#include "protocol/duration.h"
#include "protocol/job_json.h"
#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 2> kPauseMembers = {"for", "create"};
constexpr std::array<std::string_view, 1> kKickMembers = {"count"};

}  // namespace

StatusOr<PauseRequest> ParsePauseRequest(std::string_view json) {
  PauseRequest request;
  if (IsBlank(json)) {
    return request;
  }
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "for") {
          return SetDuration(name, value, &request.duration);
        }
        if (name == "create") {
          return SetBool(name, value, &request.create);
        }
        return UnknownMember(name, kPauseMembers);
      }));
  return request;
}

std::string PauseRequestToJson(const PauseRequest& request) {
  JsonObjectWriter writer;
  if (request.duration.has_value()) {
    writer.String("for", FormatDuration(*request.duration));
  }
  if (request.create) {
    writer.Bool("create", true);
  }
  return writer.Take();
}

StatusOr<uint32_t> ParseKickRequest(std::string_view json) {
  uint32_t count = 1;
  if (IsBlank(json)) {
    return count;
  }
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        return name == "count" ? SetUint32(name, value, &count) : UnknownMember(name, kKickMembers);
      }));
  return count;
}

std::string KickRequestToJson(uint32_t count) {
  JsonObjectWriter writer;
  writer.Number("count", count);
  return writer.Take();
}

std::string KickedToJson(uint64_t count) {
  JsonObjectWriter writer;
  writer.Number("kicked", count);
  return writer.Take();
}

StatusOr<uint64_t> ParseKicked(std::string_view json) {
  uint64_t count = 0;
  DELAYD_RETURN_IF_ERROR(
      ReadAnswer(json, {"kicked"}, [&](std::string_view name, const JsonValue& value) {
        return name == "kicked" ? SetUint64(name, value, kCountMax, &count) : OkStatus();
      }));
  return count;
}

}  // namespace delayd::protocol
