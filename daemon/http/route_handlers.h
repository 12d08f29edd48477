// daemon/http/route_handlers.h — one function per route, which turns its request into a command.
//
// Errors:  a request that cannot be understood yields a status, most often a 400.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
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
  const std::vector<std::string>& captures;  // the segments that match the '*' of the route
  const std::vector<std::pair<std::string, std::string>>& query;
  const Now& now;
  protocol::JobSpecLines* lines;  // of the body, as far as it has been read
  size_t payload_bytes_max;
  uint64_t user_jobs_max;
  const ServiceReport& service;
};

// A status is a refusal.
using Handled = std::variant<Order, AdminOrder, Response, ReadOn, Status>;
using Handler = Handled (*)(const RouteInput& input);

// ---- route_handlers.cc: jobs and their leases ----
Handled EnqueueJobs(const RouteInput& input);
Handled ListJobs(const RouteInput& input);
Handled ShowJob(const RouteInput& input);
Handled CancelJob(const RouteInput& input);
Handled RescheduleJob(const RouteInput& input);
Handled KickJob(const RouteInput& input);
Handled LeaseOneJob(const RouteInput& input);
Handled AckLeases(const RouteInput& input);
Handled AckLease(const RouteInput& input);
Handled NackLease(const RouteInput& input);
Handled BuryLease(const RouteInput& input);
Handled ExtendLease(const RouteInput& input);

// ---- bulk_handlers.cc: many jobs at once ----
Handled CancelJobs(const RouteInput& input);
Handled CancelJobsById(const RouteInput& input);
Handled KickJobs(const RouteInput& input);
Handled RescheduleJobs(const RouteInput& input);
Handled ForecastJobs(const RouteInput& input);

// ---- queue_handlers.cc: queues ----
Handled LeaseJobs(const RouteInput& input);
Handled PauseQueue(const RouteInput& input);
Handled ResumeQueue(const RouteInput& input);
Handled KickQueue(const RouteInput& input);
Handled ListQueues(const RouteInput& input);
Handled ShowQueue(const RouteInput& input);

// ---- service_handlers.cc: the daemon itself ----
Handled ShowStats(const RouteInput& input);
Handled AcceptClock(const RouteInput& input);
Handled DrainDaemon(const RouteInput& input);
Handled VerifyNow(const RouteInput& input);
Handled BackUpNow(const RouteInput& input);
Handled ShowHealth(const RouteInput& input);
Handled ShowReadiness(const RouteInput& input);
Handled ShowMetrics(const RouteInput& input);
Handled ShowOpenApi(const RouteInput& input);

// ---- Shared by handlers ----
// "2027-01-01T09:00:00Z", or "1h", which counts from `now`.
StatusOr<WallTime> ParseMoment(const std::string& text, const Now& now);
StatusOr<JobState> ParseStateName(const std::string& text);
StatusOr<uint32_t> ParseLimit(const std::string& text);
// For a route that takes no members: a body that has some is a misunderstanding.
Status CheckNoMembers(const RouteInput& input);

template <typename T, typename Field>
Status Take(StatusOr<T> parsed, Field* field) {
  DELAYD_RETURN_IF_ERROR(parsed.status());
  *field = *std::move(parsed);
  return OkStatus();
}

}  // namespace delayd::http
