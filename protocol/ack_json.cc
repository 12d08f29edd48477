#include "protocol/ack_json.h"

#include <array>

#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 1> kAckMembers = {"tokens"};

Status SetTokens(std::string_view name, const JsonValue& value, std::vector<LeaseToken>* out) {
  out->clear();
  return SetEach(name, value, [out](const JsonValue& element) -> Status {
    DELAYD_ASSIGN_OR_RETURN(const std::string text, JsonToString(element));
    DELAYD_ASSIGN_OR_RETURN(const LeaseToken token, ParseLeaseToken(text));
    out->push_back(token);
    return OkStatus();
  });
}

}  // namespace

StatusOr<std::vector<LeaseToken>> ParseAckRequest(std::string_view json) {
  std::vector<LeaseToken> tokens;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        return name == "tokens" ? SetTokens(name, value, &tokens)
                                : UnknownMember(name, kAckMembers);
      }));
  return tokens;
}

std::string AckedLeasesToJson(const AckedLeases& acked) {
  JsonObjectWriter writer;
  writer.Number("acked", acked.acked);
  writer.Raw("lost", JsonArray(acked.lost, [](const LeaseToken& token) {
               return JsonString(FormatLeaseToken(token));
             }));
  return writer.Take();
}

}  // namespace delayd::protocol
