#include "protocol/cancel_json.h"

#include <array>
#include <limits>
#include <utility>

#include "base/limits.h"
#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 1> kMembers = {"ids"};

StatusOr<CancelledJobs::Refused> ReadRefused(std::string_view json) {
  CancelledJobs::Refused refused;
  uint64_t id = 0;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "id") {
          return SetUint64(name, value, limits::kJobIdMax, &id);
        }
        return name == "code" ? SetString(name, value, &refused.code) : OkStatus();
      }));
  refused.id = JobId{id};
  return refused;
}

}  // namespace

StatusOr<std::vector<JobId>> ParseCancelRequest(std::string_view json) {
  std::vector<JobId> ids;
  const auto read_id = [&ids](const JsonValue& element) -> Status {
    DELAYD_ASSIGN_OR_RETURN(const uint64_t id, JsonToUint(element, limits::kJobIdMax, 1));
    ids.push_back(JobId{id});
    return OkStatus();
  };
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name != "ids") {
          return UnknownMember(name, kMembers);
        }
        ids.clear();
        return SetEach(name, value, read_id);
      }));
  return ids;
}

std::string CancelRequestToJson(const std::vector<JobId>& ids) {
  std::string array = "[";
  for (const JobId id : ids) {
    array += array.size() > 1 ? "," : "";
    array += std::to_string(ToInt(id));
  }
  JsonObjectWriter writer;
  writer.Raw("ids", array + "]");
  return writer.Take();
}

std::string CancelledJobsToJson(const CancelledJobs& cancelled) {
  std::string array = "[";
  for (const CancelledJobs::Refused& refused : cancelled.refused) {
    JsonObjectWriter one;
    one.Number("id", ToInt(refused.id));
    one.String("code", refused.code);
    array += array.size() > 1 ? "," : "";
    array += one.Take();
  }
  JsonObjectWriter writer;
  writer.Number("cancelled", cancelled.cancelled);
  writer.Raw("refused", array + "]");
  return writer.Take();
}

StatusOr<CancelledJobs> ParseCancelledJobs(std::string_view json) {
  CancelledJobs cancelled;
  const auto read_refused = [&cancelled](const JsonValue& element) -> Status {
    DELAYD_ASSIGN_OR_RETURN(CancelledJobs::Refused refused, ReadRefused(element.text));
    cancelled.refused.push_back(std::move(refused));
    return OkStatus();
  };
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "cancelled") {
          return SetUint64(name, value, std::numeric_limits<uint64_t>::max(), &cancelled.cancelled);
        }
        if (name != "refused") {
          return OkStatus();
        }
        cancelled.refused.clear();
        return SetEach(name, value, read_refused);
      }));
  return cancelled;
}

}  // namespace delayd::protocol
