#include "daemon/http/route_handlers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "protocol/ack_json.h"
#include "protocol/duration.h"
#include "protocol/job_json.h"
#include "protocol/nearest.h"
#include "protocol/openapi.h"
#include "protocol/stats_json.h"
#include "protocol/store_json.h"
#include "protocol/timestamp.h"

namespace delayd::http {

namespace {

constexpr size_t kIfMatchTagsMax = 100;

StatusOr<uint32_t> ParseLimit(const std::string& text) {
  uint32_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size() || limit == 0 ||
      limit > limits::kListLimitMax) {
    return InvalidArgument("expected a whole number from 1 to " +
                               std::to_string(limits::kListLimitMax) + ", found " +
                               protocol::Quoted(text),
                           "invalid_limit");
  }
  return limit;
}

StatusOr<bool> ParseBool(const std::string& text) {
  if (text != "true" && text != "false") {
    return InvalidArgument("expected true or false, found " + protocol::Quoted(text),
                           "invalid_parameter");
  }
  return text == "true";
}

template <typename T, typename Field>
Status Take(StatusOr<T> parsed, Field* field) {
  DELAYD_RETURN_IF_ERROR(parsed.status());
  *field = *std::move(parsed);
  return OkStatus();
}

Status SetListParameter(const std::string& name,
                        const std::string& value,
                        const Now& now,
                        engine::List* list) {
  if (name == "state") {
    return Take(ParseStateName(value), &list->state);
  }
  if (name == "due_before") {
    return Take(ParseMoment(value, now), &list->due_before);
  }
  if (name == "due_after") {
    return Take(ParseMoment(value, now), &list->due_after);
  }
  if (name == "limit") {
    return Take(ParseLimit(value), &list->limit);
  }
  if (name == "payload") {
    return Take(ParseBool(value), &list->with_payload);
  }
  if (name == "queue") {
    list->queue = value;
    return ValidateQueueName(value);
  }
  if (name == "key_prefix") {
    list->key_prefix = value;
  } else {
    list->cursor = value;
  }
  return OkStatus();
}

struct LeaseCall {
  LeaseToken token;
  protocol::LeaseChange change;
};

// The token in the path and the members in the body; `takes` names those that mean something here.
StatusOr<LeaseCall> ParseLeaseCall(const RouteInput& input,
                                   std::span<const std::string_view> takes) {
  LeaseCall call;
  DELAYD_RETURN_IF_ERROR(Take(ParseLeaseToken(input.captures[0]), &call.token));
  DELAYD_RETURN_IF_ERROR(Take(protocol::ParseLeaseChange(input.request.body, takes), &call.change));
  return call;
}

// The tags of an If-Match header; none where there is no header, or where it asks for any state.
// One that lists nothing asks for what no job is: a client whose tag got lost means no "any".
// A weak tag (W/"...", as proxies make of a tag when they compress) matches nothing: the comparison
// is the strong one (RFC 9110, 13.1.1).
StatusOr<std::vector<std::string>> ParseIfMatch(const std::optional<std::string>& header) {
  std::vector<std::string> tags;
  if (!header || *header == "*") {
    return tags;
  }
  std::string_view rest = *header;
  const auto skip = [&rest](const char* bytes) {
    rest.remove_prefix(std::min(rest.find_first_not_of(bytes), rest.size()));
  };
  bool well_formed = true;
  // A list may have empty elements (RFC 9110, 5.6.1).
  for (skip(" \t,"); well_formed && !rest.empty(); skip(" \t,")) {
    const bool weak = rest.starts_with("W/");
    rest.remove_prefix(weak ? 2 : 0);
    const size_t end = rest.starts_with('"') ? rest.find('"', 1) : std::string_view::npos;
    well_formed = end != std::string_view::npos && tags.size() < kIfMatchTagsMax;
    if (well_formed) {
      tags.emplace_back(weak ? std::string_view() : rest.substr(1, end - 1));
      rest.remove_prefix(end + 1);
      skip(" \t");
      well_formed = rest.empty() || rest.front() == ',';
    }
  }
  if (!well_formed || tags.empty()) {
    return InvalidArgument(
        "header If-Match: expected \"TAG\" as an ETag header gave it, a list of "
        "them, or *; found " +
            protocol::Quoted(*header),
        "invalid_if_match");
  }
  return tags;
}

// Of a text that is neither a time nor a duration, and no date.
bool IsMeantAsDuration(std::string_view text) {
  return text.find_first_of("0123456789-P") == 0 && text.find_first_of(":/") == text.npos;
}

Response Plain(std::string body) {
  return {.body = std::move(body)};
}

}  // namespace

StatusOr<WallTime> ParseMoment(const std::string& text, const Now& now) {
  const StatusOr<Millis> duration = protocol::ParseDuration(text);
  if (duration.ok()) {
    return now.wall + *duration;
  }
  StatusOr<WallTime> time = protocol::ParseTimestamp(text);
  // What is meant as a date is told what is wrong with it.
  if (const bool is_date = text.size() > 4 && text[4] == '-'; time.ok() || is_date) {
    return time;
  }
  if (IsMeantAsDuration(text)) {
    return duration.status();
  }
  return InvalidArgument(
      "expected a time such as 2027-01-01T09:00:00Z or a duration from now such "
      "as 30m, found " +
          protocol::Quoted(text),
      "invalid_time");
}

StatusOr<JobState> ParseStateName(const std::string& text) {
  if (const std::optional<JobState> state = ParseJobState(text)) {
    return *state;
  }
  return InvalidArgument(
      "expected scheduled, ready, leased, dead or finished, found " + protocol::Quoted(text),
      "invalid_state");
}

StatusOr<JobRef> JobRefOf(const RouteInput& input) {
  if (input.captures.size() == 2) {
    return JobRef(KeyRef{input.captures[0], input.captures[1]});
  }
  const std::string& text = input.captures[0];
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool is_number = end == text.data() + text.size();
  if (is_number && (error == std::errc::result_out_of_range || id > limits::kJobIdMax)) {
    return InvalidArgument("there is no job id " + protocol::Quoted(text) + "; they end at " +
                               std::to_string(limits::kJobIdMax),
                           "invalid_job_id");
  }
  if (error != std::errc() || !is_number || id == 0) {
    return InvalidArgument("a job's id is a positive whole number, not " + protocol::Quoted(text),
                           "invalid_job_id");
  }
  return JobRef(JobId{id});
}

// Who sends the header counts on it when it repeats the request, and would get a second job.
Status CheckRepeatable(const Request& request, const std::vector<JobSpec>& jobs) {
  const auto has_no_key = [](const JobSpec& job) { return job.key.empty(); };
  return request.has_idempotency_key && std::ranges::any_of(jobs, has_no_key)
             ? InvalidArgument(
                   "header Idempotency-Key: is not kept here; give the job that text as its "
                   "member 'key': with it the same request again is answered with the same job",
                   "idempotency_key_refused")
             : OkStatus();
}

Routed EnqueueJobs(const RouteInput& input) {
  engine::Enqueue enqueue;
  if (input.user_jobs_max != 0) {
    enqueue.user = input.request.user;
    enqueue.user_jobs_max = input.request.role == Role::kAdmin ? 0 : input.user_jobs_max;
  }
  if (input.request.content_type == kLinesType) {
    StatusOr<std::vector<JobSpec>> jobs = protocol::ParseJobSpecLines(
        input.request.body, input.payload_bytes_max, limits::kEnqueueBatchJobsMax);
    if (!jobs.ok()) {
      return ProblemResponse(jobs.status());
    }
    enqueue.jobs = *std::move(jobs);
    if (enqueue.jobs.empty()) {
      return ProblemResponse(InvalidArgument("the body holds no job; send one job a line"));
    }
    if (const Status status = CheckRepeatable(input.request, enqueue.jobs); !status.ok()) {
      return ProblemResponse(status);
    }
    enqueue.brief = input.request.wants_minimal;
    const ReplyForm form = enqueue.brief ? ReplyForm::kEnqueuedIds : ReplyForm::kEnqueuedLines;
    return Order{std::move(enqueue), form};
  }
  StatusOr<JobSpec> job = protocol::ParseJobSpec(input.request.body, input.payload_bytes_max);
  if (!job.ok()) {
    return ProblemResponse(job.status());
  }
  enqueue.jobs.push_back(*std::move(job));
  if (const Status status = CheckRepeatable(input.request, enqueue.jobs); !status.ok()) {
    return ProblemResponse(status);
  }
  return Order{std::move(enqueue), ReplyForm::kEnqueuedOne};
}

Routed ListJobs(const RouteInput& input) {
  engine::List list;
  for (const auto& [name, value] : input.query) {
    const Status status = SetListParameter(name, value, input.now, &list);
    if (!status.ok()) {
      return ProblemResponse(status.WithContext("query parameter '" + name + "'"));
    }
  }
  return Order{std::move(list), ReplyForm::kJobList};
}

Routed ShowJob(const RouteInput& input) {
  StatusOr<JobRef> job = JobRefOf(input);
  if (!job.ok()) {
    return ProblemResponse(job.status());
  }
  return Order{engine::Show{*std::move(job)}, ReplyForm::kOneJob};
}

Routed CancelJob(const RouteInput& input) {
  StatusOr<JobRef> job = JobRefOf(input);
  if (!job.ok()) {
    return ProblemResponse(job.status());
  }
  StatusOr<std::vector<std::string>> tags = ParseIfMatch(input.request.if_match);
  if (!tags.ok()) {
    return ProblemResponse(tags.status());
  }
  return Order{engine::Cancel{*std::move(job), *std::move(tags)}, ReplyForm::kOneJob};
}

Routed RescheduleJob(const RouteInput& input) {
  StatusOr<JobRef> job = JobRefOf(input);
  if (!job.ok()) {
    return ProblemResponse(job.status());
  }
  const StatusOr<protocol::RescheduleRequest> change =
      protocol::ParseRescheduleRequest(input.request.body);
  if (!change.ok()) {
    return ProblemResponse(change.status());
  }
  StatusOr<std::vector<std::string>> tags = ParseIfMatch(input.request.if_match);
  if (!tags.ok()) {
    return ProblemResponse(tags.status());
  }
  if (change->touch) {
    return Order{engine::Touch{*std::move(job), *std::move(tags)}, ReplyForm::kOneJob};
  }
  return Order{engine::Reschedule{*std::move(job), change->due, change->priority, *std::move(tags)},
               ReplyForm::kOneJob};
}

Routed LeaseJobs(const RouteInput& input) {
  const StatusOr<protocol::LeaseRequest> wish = protocol::ParseLeaseRequest(input.request.body);
  if (!wish.ok()) {
    return ProblemResponse(wish.status());
  }
  engine::Lease lease;
  lease.queues.push_back(input.captures[0]);
  lease.count = wish->count;
  lease.wait = wish->wait;
  lease.lease = wish->lease;
  lease.client = wish->client;
  return Order{std::move(lease), ReplyForm::kLeased};
}

Routed AckLeases(const RouteInput& input) {
  StatusOr<std::vector<LeaseToken>> tokens = protocol::ParseAckRequest(input.request.body);
  if (!tokens.ok()) {
    return ProblemResponse(tokens.status());
  }
  return Order{engine::AckMany{*std::move(tokens)}, ReplyForm::kAcked};
}

Routed AckLease(const RouteInput& input) {
  const StatusOr<LeaseToken> token = ParseLeaseToken(input.captures[0]);
  if (!token.ok()) {
    return ProblemResponse(token.status());
  }
  if (std::optional<Response> refused = RefuseMembers(input)) {
    return *std::move(refused);
  }
  return Order{engine::Ack{*token}, ReplyForm::kOneJob};
}

Routed NackLease(const RouteInput& input) {
  constexpr std::array<std::string_view, 4> kTakes = {
      "delay", "error", "priority", "counts_as_attempt"};
  const StatusOr<LeaseCall> call = ParseLeaseCall(input, kTakes);
  if (!call.ok()) {
    return ProblemResponse(call.status());
  }
  return Order{engine::Nack{call->token,
                            call->change.delay,
                            call->change.error,
                            call->change.priority,
                            call->change.counts_as_attempt},
               ReplyForm::kOneJob};
}

Routed BuryLease(const RouteInput& input) {
  constexpr std::array<std::string_view, 2> kTakes = {"error", "priority"};
  const StatusOr<LeaseCall> call = ParseLeaseCall(input, kTakes);
  if (!call.ok()) {
    return ProblemResponse(call.status());
  }
  return Order{engine::Bury{call->token, call->change.error, call->change.priority},
               ReplyForm::kOneJob};
}

Routed ExtendLease(const RouteInput& input) {
  constexpr std::array<std::string_view, 1> kTakes = {"lease"};
  const StatusOr<LeaseCall> call = ParseLeaseCall(input, kTakes);
  if (!call.ok()) {
    return ProblemResponse(call.status());
  }
  return Order{engine::Extend{call->token, call->change.lease}, ReplyForm::kOneJob};
}

Routed ListQueues(const RouteInput& input) {
  engine::ListQueues list;
  for (const auto& [name, value] : input.query) {
    if (name == "cursor") {
      list.cursor = value;
    } else if (const Status status = Take(ParseLimit(value), &list.limit); !status.ok()) {
      return ProblemResponse(status.WithContext("query parameter '" + name + "'"));
    }
  }
  return Order{std::move(list), ReplyForm::kQueueList};
}

Routed ShowQueue(const RouteInput& input) {
  return Order{engine::ListQueues{input.captures[0]}, ReplyForm::kOneQueue};
}

Routed ShowStats(const RouteInput&) {
  return Order{engine::GetStats{}, ReplyForm::kStats};
}

Routed AcceptClock(const RouteInput& input) {
  if (std::optional<Response> refused = RefuseMembers(input)) {
    return *std::move(refused);
  }
  return Order{engine::AcceptClock{}, ReplyForm::kStats};
}

Routed DrainDaemon(const RouteInput& input) {
  const StatusOr<bool> on = protocol::ParseDrainRequest(input.request.body);
  if (!on.ok()) {
    return ProblemResponse(on.status());
  }
  return Order{engine::Drain{.on = *on}, ReplyForm::kStats};
}

Routed VerifyNow(const RouteInput& input) {
  if (std::optional<Response> refused = RefuseMembers(input)) {
    return *std::move(refused);
  }
  return AdminOrder{VerifyCommand{}};
}

Routed BackUpNow(const RouteInput& input) {
  StatusOr<protocol::BackupRequest> wish = protocol::ParseBackupRequest(input.request.body);
  if (!wish.ok()) {
    return ProblemResponse(wish.status());
  }
  return AdminOrder{BackUpCommand{std::move(wish->dir)}};
}

// Alive: the core thread turns.
Routed ShowHealth(const RouteInput& input) {
  return input.service != nullptr
             ? input.service->Health(input.now)
             : Plain(protocol::HealthToJson({"ok", std::string(input.version)}));
}

// The sockets open only when the timers are loaded, and close before the daemon stops serving.
Routed ShowReadiness(const RouteInput& input) {
  return input.service != nullptr
             ? input.service->Readiness(input.now)
             : Plain(protocol::HealthToJson({"ready", std::string(input.version)}));
}

Routed ShowMetrics(const RouteInput& input) {
  return input.service != nullptr
             ? input.service->Metrics(input.now)
             : ProblemResponse(NotFound("this daemon has no metrics", "no_metrics"));
}

Routed ShowOpenApi(const RouteInput&) {
  return Plain(std::string(protocol::OpenApiDocument()));
}

}  // namespace delayd::http
