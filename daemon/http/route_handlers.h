// daemon/http/route_handlers.h — one function a route: its request as a command.
//
// Errors:  what cannot be understood is answered with a response, most often 400.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "daemon/http/http_message.h"
#include "daemon/http/router.h"

namespace delayd::http {

inline constexpr std::string_view kLinesType = "application/x-ndjson";

// A request whose path, query names and content type have been checked against its route.
struct RouteInput {
  const Request& request;
  const std::vector<std::string>& captures;  // the segments where the route has '*'
  const std::vector<std::pair<std::string, std::string>>& query;
  const Now& now;
  size_t payload_bytes_max;
  uint64_t user_jobs_max;
  std::string_view version;
  const ServiceReport* service;
};

using Routed = std::variant<Order, AdminOrder, Response>;
using Handler = Routed (*)(const RouteInput& input);

Routed EnqueueJobs(const RouteInput& input);
Routed ListJobs(const RouteInput& input);
Routed ShowJob(const RouteInput& input);
Routed CancelJob(const RouteInput& input);
Routed RescheduleJob(const RouteInput& input);
Routed CancelJobs(const RouteInput& input);
Routed KickJobs(const RouteInput& input);
Routed RescheduleJobs(const RouteInput& input);
Routed ForecastJobs(const RouteInput& input);
Routed LeaseJobs(const RouteInput& input);
Routed CancelJobsById(const RouteInput& input);
Routed AckLeases(const RouteInput& input);
Routed AckLease(const RouteInput& input);
Routed NackLease(const RouteInput& input);
Routed BuryLease(const RouteInput& input);
Routed ExtendLease(const RouteInput& input);
Routed KickJob(const RouteInput& input);
Routed LeaseOneJob(const RouteInput& input);
Routed PauseQueue(const RouteInput& input);
Routed ResumeQueue(const RouteInput& input);
Routed KickQueue(const RouteInput& input);
// "42", or "orders" and "order:1001" of a by-key path.
StatusOr<JobRef> JobRefOf(const RouteInput& input);
Routed ListQueues(const RouteInput& input);
Routed ShowQueue(const RouteInput& input);
Routed ShowStats(const RouteInput& input);
Routed AcceptClock(const RouteInput& input);
Routed DrainDaemon(const RouteInput& input);
Routed VerifyNow(const RouteInput& input);
Routed BackUpNow(const RouteInput& input);
Routed ShowHealth(const RouteInput& input);
Routed ShowReadiness(const RouteInput& input);
Routed ShowMetrics(const RouteInput& input);
Routed ShowOpenApi(const RouteInput& input);

// Shared by handlers: "2027-01-01T09:00:00Z" or "1h" from now on; a state by its name.
StatusOr<WallTime> ParseMoment(const std::string& text, const Now& now);
StatusOr<JobState> ParseStateName(const std::string& text);
// Of a route that is asked with nothing: a body that says something is a misunderstanding.
std::optional<Response> RefuseMembers(const RouteInput& input);

}  // namespace delayd::http
