#include "protocol/cancel_json.h"

#include <array>

#include "base/limits.h"
#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 1> kCancelMembers = {"ids"};

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
          return UnknownMember(name, kCancelMembers);
        }
        return SetEach(name, value, read_id);
      }));
  return ids;
}

std::string CancelledJobsToJson(const CancelledJobs& cancelled) {
  JsonObjectWriter writer;
  writer.Number("cancelled", cancelled.cancelled);
  writer.Raw("refused", JsonArray(cancelled.refused, [](const CancelledJobs::Refused& refused) {
               JsonObjectWriter one;
               one.Number("id", ToInt(refused.id));
               one.String("code", refused.status.reason());
               for (const auto& [name, value] : refused.status.details()) {
                 one.String(name, value);
               }
               return one.Take();
             }));
  return writer.Take();
}

}  // namespace delayd::protocol
