// Routes for the daemon itself.
#include <string>
#include <utility>

#include "daemon/http/route_handlers.h"
#include "protocol/openapi.h"
#include "protocol/stats_json.h"
#include "protocol/store_json.h"

namespace delayd::http {

Handled ShowStats(const RouteInput&) {
  return Order{engine::GetStats{}, ReplyForm::kStats};
}

Handled AcceptClock(const RouteInput& input) {
  DELAYD_RETURN_IF_ERROR(CheckNoMembers(input));
  return Order{engine::AcceptClock{}, ReplyForm::kStats};
}

Handled DrainDaemon(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(const bool on, protocol::ParseDrainRequest(input.request.body));
  return Order{engine::Drain{.on = on}, ReplyForm::kStats};
}

Handled VerifyNow(const RouteInput& input) {
  DELAYD_RETURN_IF_ERROR(CheckNoMembers(input));
  return AdminOrder{VerifyCommand{}};
}

Handled BackUpNow(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(protocol::BackupRequest wish,
                          protocol::ParseBackupRequest(input.request.body));
  return AdminOrder{BackUpCommand{std::move(wish.dir)}};
}

Handled ShowHealth(const RouteInput& input) {
  return input.service.Health(input.now);
}

Handled ShowReadiness(const RouteInput& input) {
  return input.service.Readiness(input.now);
}

Handled ShowMetrics(const RouteInput& input) {
  return input.service.Metrics(input.now);
}

Handled ShowOpenApi(const RouteInput&) {
  return Response{.body = std::string(protocol::OpenApiDocument())};
}

}  // namespace delayd::http
