// Routes that act on a whole queue, or on one job whatever its queue says.
#include <array>
#include <optional>
#include <string_view>

#include "daemon/http/route_handlers.h"
#include "protocol/job_json.h"
#include "protocol/json_reader.h"
#include "protocol/nearest.h"

namespace delayd::http {

std::optional<Response> RefuseMembers(const RouteInput& input) {
  if (protocol::IsBlank(input.request.body)) {
    return std::nullopt;
  }
  const Status empty = protocol::ReadJsonObject(
      input.request.body, [](std::string_view name, const protocol::JsonValue&) {
        return InvalidArgument("member " + protocol::Quoted(name) +
                                   ": is unknown; this request takes none, send {} or no body",
                               "unknown_member");
      });
  return empty.ok() ? std::nullopt : std::optional(ProblemResponse(empty));
}

Routed KickJob(const RouteInput& input) {
  StatusOr<JobRef> job = JobRefOf(input);
  if (!job.ok()) {
    return ProblemResponse(job.status());
  }
  if (std::optional<Response> refused = RefuseMembers(input)) {
    return *std::move(refused);
  }
  return Order{engine::Kick{*std::move(job)}, ReplyForm::kOneJob};
}

Routed LeaseOneJob(const RouteInput& input) {
  StatusOr<JobRef> job = JobRefOf(input);
  if (!job.ok()) {
    return ProblemResponse(job.status());
  }
  constexpr std::array<std::string_view, 2> kTakes = {"lease", "client"};
  const StatusOr<protocol::LeaseRequest> wish =
      protocol::ParseLeaseRequest(input.request.body, kTakes);
  if (!wish.ok()) {
    return ProblemResponse(wish.status());
  }
  return Order{engine::LeaseJob{*std::move(job), wish->lease, wish->client}, ReplyForm::kLeased};
}

Routed PauseQueue(const RouteInput& input) {
  const StatusOr<protocol::PauseRequest> wish = protocol::ParsePauseRequest(input.request.body);
  if (!wish.ok()) {
    return ProblemResponse(wish.status());
  }
  return Order{engine::Pause{input.captures[0], wish->duration, wish->create},
               ReplyForm::kOneQueue};
}

Routed ResumeQueue(const RouteInput& input) {
  if (std::optional<Response> refused = RefuseMembers(input)) {
    return *std::move(refused);
  }
  return Order{engine::Resume{input.captures[0]}, ReplyForm::kOneQueue};
}

Routed KickQueue(const RouteInput& input) {
  const StatusOr<uint32_t> count = protocol::ParseKickRequest(input.request.body);
  if (!count.ok()) {
    return ProblemResponse(count.status());
  }
  return Order{engine::KickQueue{input.captures[0], *count}, ReplyForm::kKicked};
}

}  // namespace delayd::http
