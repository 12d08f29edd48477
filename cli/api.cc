#include "cli/api.h"

#include <algorithm>
#include <iterator>

#include "base/limits.h"
#include "cli/stat.h"
#include "protocol/duration.h"
#include "protocol/problem.h"
#include "protocol/timestamp.h"

namespace delayd::cli {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kNdjson = "application/x-ndjson";

std::string QueueTarget(std::string_view queue) {
  return "/v1/queues/" + protocol::PercentEncode(queue);
}

std::string JobTarget(const JobRef& job) {
  if (const auto* id = std::get_if<JobId>(&job)) {
    return "/v1/jobs/" + std::to_string(ToInt(*id));
  }
  const auto& key = std::get<KeyRef>(job);
  return QueueTarget(key.queue) + "/jobs/by-key/" + protocol::PercentEncode(key.key);
}

// An unreadable answer is not the user's fault, and it will not pass by itself: another server may
// be listening there.
Status NotUnderstood(std::string_view method, const std::string& why) {
  const std::string message =
      "the daemon's answer is not understood: " + why +
      "; check that it is delayd that answers, of the same version as delayctl";
  return method == "GET" ? Internal(message, "invalid_response")
                         : Unknown(message + std::string(protocol::kMayBeDone), "invalid_response");
}

template <typename T>
StatusOr<T> Understood(std::string_view method, StatusOr<T> parsed) {
  return parsed.ok() ? std::move(parsed) : NotUnderstood(method, parsed.status().message());
}

bool IsDone(const protocol::HttpResponse& response) {
  return response.status / 100 == 2 && protocol::IsDelayds(response.status, response.body);
}

// A refusal that delayd did not write comes from a proxy. It may have passed the request on and
// lost the answer, unless it says that it let nothing through.
Status Refusal(std::string_view method, const protocol::HttpResponse& response) {
  Status status = protocol::ParseProblem(response.status, response.body, response.location);
  const bool refused = response.status < 500 && (status.code() == StatusCode::kPermissionDenied ||
                                                 status.code() == StatusCode::kResourceExhausted);
  if (method == "GET" || refused || protocol::IsDelayds(response.status, response.body)) {
    return status;
  }
  return Unknown(status.message() + std::string(protocol::kMayBeDone),
                 status.code() == StatusCode::kDeadlineExceeded ? "timed_out" : "outcome_unknown");
}

void AppendQuery(std::string_view name, const std::optional<std::string>& value, std::string* out) {
  if (value.has_value()) {
    *out += out->find('?') == std::string::npos ? '?' : '&';
    out->append(name).append("=").append(protocol::PercentEncode(*value));
  }
}

}  // namespace

StatusOr<protocol::HttpResponse> Api::Exchange(std::string_view method,
                                               std::string_view target,
                                               std::string_view content_type,
                                               std::string_view body,
                                               std::optional<Millis> timeout) {
  const WallTime asked = clock_ == nullptr ? WallTime() : clock_->Here();
  StatusOr<protocol::HttpResponse> response =
      client_->Call(method, target, content_type, body, timeout.value_or(timeout_));
  if (clock_ != nullptr && response.ok() && response->date) {
    clock_->Hear(asked, *response->date);
  }
  date_ = response.ok() ? response->date : std::nullopt;
  return response;
}

StatusOr<std::string> Api::Call(std::string_view method,
                                std::string_view target,
                                std::string_view content_type,
                                std::string_view body,
                                std::optional<Millis> timeout) {
  DELAYD_ASSIGN_OR_RETURN(protocol::HttpResponse response,
                          Exchange(method, target, content_type, body, timeout));
  if (!IsDone(response)) {
    return Refusal(method, response);
  }
  return std::move(response.body);
}

template <typename T>
StatusOr<T> Api::Ask(Parser<T> parse,
                     std::string_view method,
                     std::string_view target,
                     std::string_view json,
                     std::optional<Millis> timeout) {
  const std::string_view content_type = json.empty() ? std::string_view() : kJson;
  DELAYD_ASSIGN_OR_RETURN(const std::string answer,
                          Call(method, target, content_type, json, timeout));
  return Understood(method, parse(answer));
}

StatusOr<protocol::EnqueuedJob> Api::Enqueue(const JobSpec& spec) {
  const std::string body = protocol::JobSpecToJson(spec);
  DELAYD_ASSIGN_OR_RETURN(const protocol::HttpResponse response,
                          Exchange("POST", "/v1/jobs", kJson, body));
  if (!IsDone(response)) {
    return Refusal("POST", response);
  }
  DELAYD_ASSIGN_OR_RETURN(JobView job, Understood("POST", protocol::ParseJob(response.body)));
  // For a single job the HTTP status tells whether it existed.
  return protocol::EnqueuedJob{.job = std::move(job), .existed = response.status == 200};
}

StatusOr<std::vector<protocol::EnqueuedJob>> Api::EnqueueLines(std::string_view ndjson,
                                                               size_t lines) {
  DELAYD_ASSIGN_OR_RETURN(const std::string answer, Call("POST", "/v1/jobs", kNdjson, ndjson));
  std::vector<protocol::EnqueuedJob> jobs;
  std::string_view rest = answer;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.find_first_not_of(" \r\t") == std::string_view::npos) {
      continue;
    }
    DELAYD_ASSIGN_OR_RETURN(protocol::EnqueuedJob job,
                            Understood("POST", protocol::ParseEnqueued(line)));
    jobs.push_back(std::move(job));
  }
  if (jobs.size() != lines) {
    return NotUnderstood(
        "POST", std::to_string(jobs.size()) + " jobs to " + std::to_string(lines) + " lines");
  }
  return jobs;
}

StatusOr<JobView> Api::Show(const JobRef& job, Millis at_most) {
  return Ask(protocol::ParseJob, "GET", JobTarget(job), {}, std::min(at_most, timeout_));
}

StatusOr<JobView> Api::Cancel(const JobRef& job) {
  return Ask(protocol::ParseJob, "DELETE", JobTarget(job));
}

StatusOr<JobView> Api::Reschedule(const JobRef& job, const protocol::RescheduleRequest& request) {
  return Ask(
      protocol::ParseJob, "PATCH", JobTarget(job), protocol::RescheduleRequestToJson(request));
}

StatusOr<JobView> Api::Kick(const JobRef& job) {
  return Ask(protocol::ParseJob, "POST", JobTarget(job) + "/kick");
}

StatusOr<uint64_t> Api::KickQueue(std::string_view queue, uint32_t count) {
  return Ask(protocol::ParseKicked,
             "POST",
             QueueTarget(queue) + "/kick",
             protocol::KickRequestToJson(count));
}

StatusOr<protocol::QueueCounts> Api::Pause(std::string_view queue,
                                           const protocol::PauseRequest& request) {
  return Ask(protocol::ParseQueue,
             "POST",
             QueueTarget(queue) + "/pause",
             protocol::PauseRequestToJson(request));
}

StatusOr<protocol::QueueCounts> Api::Resume(std::string_view queue) {
  return Ask(protocol::ParseQueue, "POST", QueueTarget(queue) + "/resume");
}

StatusOr<protocol::JobPage> Api::List(const ListQuery& query) {
  std::string target = "/v1/jobs";
  AppendQuery("queue", query.filter.queue, &target);
  AppendQuery("state", query.filter.state, &target);
  AppendQuery("due_before", query.filter.due_before, &target);
  AppendQuery("due_after", query.filter.due_after, &target);
  AppendQuery("key_prefix", query.filter.key_prefix, &target);
  if (query.with_payload) {
    AppendQuery("payload", "true", &target);
  }
  AppendQuery("limit", std::to_string(query.limit), &target);
  if (!query.cursor.empty()) {
    AppendQuery("cursor", query.cursor, &target);
  }
  return Ask(protocol::ParseJobPage, "GET", target);
}

StatusOr<protocol::JobPage> Api::ListUpTo(const protocol::JobFilterText& filter, uint64_t limit) {
  ListQuery query{.filter = filter};
  protocol::JobPage all;
  do {
    query.limit = std::min<uint64_t>(limit - all.jobs.size(), limits::kListLimitMax);
    DELAYD_ASSIGN_OR_RETURN(protocol::JobPage page, List(query));
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(all.jobs));
    query.cursor = all.next_cursor = std::move(page.next_cursor);
  } while (!query.cursor.empty() && all.jobs.size() < limit);
  return all;
}

StatusOr<std::vector<JobView>> Api::Lease(std::string_view queue,
                                          const protocol::LeaseRequest& request) {
  DELAYD_ASSIGN_OR_RETURN(protocol::JobPage page,
                          Ask(protocol::ParseJobPage,
                              "POST",
                              QueueTarget(queue) + "/lease",
                              protocol::LeaseRequestToJson(request),
                              timeout_ + request.wait));
  return std::move(page.jobs);
}

StatusOr<JobView> Api::ChangeLease(std::string_view token,
                                   std::string_view action,
                                   const protocol::LeaseChange& change,
                                   Millis at_most) {
  return Ask(protocol::ParseJob,
             "POST",
             "/v1/leases/" + protocol::PercentEncode(token) + "/" + std::string(action),
             protocol::LeaseChangeToJson(change),
             std::min(at_most, timeout_));
}

StatusOr<protocol::ChangedMany> Api::ChangeMany(std::string_view action,
                                                const protocol::ChangeManyRequest& request) {
  return Ask(protocol::ParseChangedMany,
             "POST",
             "/v1/jobs:" + std::string(action),
             protocol::ChangeManyRequestToJson(request));
}

StatusOr<std::vector<protocol::ForecastStep>> Api::Forecast(const ForecastQuery& query) {
  std::string target = "/v1/forecast";
  AppendQuery("queue", query.queue, &target);
  AppendQuery("from", FormatUtc(query.from), &target);
  AppendQuery("to", FormatUtc(query.to), &target);
  AppendQuery("step", protocol::FormatDuration(query.step), &target);
  return Ask(protocol::ParseForecast, "GET", target);
}

StatusOr<std::vector<protocol::QueueCounts>> Api::Queues() {
  // In pages: other clients wait while the daemon writes one, and there may be 100,000 queues.
  std::vector<protocol::QueueCounts> queues;
  std::string cursor;
  do {
    std::string target = "/v1/queues?limit=" + std::to_string(limits::kListLimitMax);
    if (!cursor.empty()) {
      AppendQuery("cursor", cursor, &target);
    }
    DELAYD_ASSIGN_OR_RETURN(protocol::QueuePage page, Ask(protocol::ParseQueues, "GET", target));
    std::move(page.queues.begin(), page.queues.end(), std::back_inserter(queues));
    cursor = std::move(page.next_cursor);
  } while (!cursor.empty());
  return queues;
}

StatusOr<protocol::QueueCounts> Api::Queue(std::string_view name) {
  return Ask(protocol::ParseQueue, "GET", QueueTarget(name));
}

StatusOr<std::vector<protocol::Stat>> Api::Stats() {
  return Ask(protocol::ParseStats, "GET", "/v1/stats");
}

StatusOr<WallTime> Api::Time() {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::Stat> stats, Stats());
  if (const std::optional<std::string> now = StatText(stats, "now")) {
    return Understood("GET", protocol::ParseTimestamp(*now));
  }
  if (!date_) {
    return Internal("the daemon's answer does not tell its time; give a time, not a duration",
                    "invalid_response");
  }
  return *date_;
}

Status Api::FixTimes(std::initializer_list<std::optional<std::string>*> texts) {
  std::optional<WallTime> now;
  for (std::optional<std::string>* text : texts) {
    const StatusOr<Millis> duration = protocol::ParseDuration(text->value_or(""));
    if (!duration.ok()) {
      continue;  // a time, or unset
    }
    if (!now) {
      DELAYD_ASSIGN_OR_RETURN(now, Time());
    }
    *text = FormatUtc(*now + *duration);
  }
  return OkStatus();
}

StatusOr<std::string> Api::Metrics() {
  DELAYD_ASSIGN_OR_RETURN(protocol::HttpResponse response, Exchange("GET", "/metrics"));
  if (response.status / 100 != 2) {
    return Refusal("GET", response);
  }
  return std::move(response.body);
}

StatusOr<std::vector<protocol::Stat>> Api::AcceptClock() {
  return Ask(protocol::ParseStats, "POST", "/v1/clock/accept");
}

StatusOr<std::vector<protocol::Stat>> Api::Drain(bool on) {
  return Ask(protocol::ParseStats, "POST", "/v1/admin/drain", protocol::DrainRequestToJson(on));
}

StatusOr<protocol::VerifyResult> Api::Verify() {
  return Ask(protocol::ParseVerifyResult, "POST", "/v1/admin/verify");
}

StatusOr<protocol::BackupResult> Api::BackUp(const protocol::BackupRequest& request) {
  return Ask(protocol::ParseBackupResult,
             "POST",
             "/v1/admin/backup",
             protocol::BackupRequestToJson(request));
}

StatusOr<protocol::Health> Api::Health() {
  return HealthAt("/healthz");
}

StatusOr<protocol::Health> Api::Readiness() {
  return HealthAt("/readyz");
}

// A daemon that is not well answers 503 and says why.
StatusOr<protocol::Health> Api::HealthAt(std::string_view target) {
  DELAYD_ASSIGN_OR_RETURN(const protocol::HttpResponse response, Exchange("GET", target));
  StatusOr<protocol::Health> health = protocol::ParseHealth(response.body);
  if (!IsDone(response) && !(response.status == 503 && health.ok())) {
    return Refusal("GET", response);
  }
  return Understood("GET", std::move(health));
}

}  // namespace delayd::cli
