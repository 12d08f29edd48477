// Routes for jobs and their leases, and the parsing that all handlers share.
#include "daemon/http/route_handlers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "protocol/ack_json.h"
#include "protocol/duration.h"
#include "protocol/job_json.h"
#include "protocol/json_reader.h"
#include "protocol/nearest.h"
#include "protocol/timestamp.h"

namespace delayd::http {

namespace {

constexpr size_t kIfMatchTagsMax = 100;

StatusOr<bool> ParseBool(const std::string& text) {
  if (text != "true" && text != "false") {
    return InvalidArgument("expected true or false, found " + protocol::Quoted(text),
                           "invalid_parameter");
  }
  return text == "true";
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

// The job that the path names: "42", or "orders" and "order:1001" in a by-key path.
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

struct LeaseCall {
  LeaseToken token;
  protocol::LeaseChange change;
};

// Parses the token in the path and the members in the body; `takes` lists the allowed members.
StatusOr<LeaseCall> ParseLeaseCall(const RouteInput& input,
                                   std::span<const std::string_view> takes) {
  LeaseCall call;
  DELAYD_RETURN_IF_ERROR(Take(ParseLeaseToken(input.captures[0]), &call.token));
  DELAYD_RETURN_IF_ERROR(Take(protocol::ParseLeaseChange(input.request.body, takes), &call.change));
  return call;
}

// The tags of an If-Match header; none if there is no header or it is "*", which matches any state.
// An empty list is refused: a client whose tag got lost does not mean "any".
// A weak tag (W/"...", which a proxy makes of a tag when it compresses) matches nothing, because
// If-Match uses the strong comparison (RFC 9110, 13.1.1).
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

// A client that sends the header relies on it when it repeats the request, and would get a second
// job.
Status CheckRepeatable(const Request& request, const std::vector<JobSpec>& jobs) {
  const auto has_no_key = [](const JobSpec& job) { return job.key.empty(); };
  return request.has_idempotency_key && std::ranges::any_of(jobs, has_no_key)
             ? InvalidArgument(
                   "header Idempotency-Key: is not kept here; give the job that text as its "
                   "member 'key': with it the same request again is answered with the same job",
                   "idempotency_key_refused")
             : OkStatus();
}

// For a text that is neither a valid time nor a valid duration, and does not look like a date.
bool IsMeantAsDuration(std::string_view text) {
  return text.find_first_of("0123456789-P") == 0 && text.find_first_of(":/") == text.npos;
}

}  // namespace

StatusOr<WallTime> ParseMoment(const std::string& text, const Now& now) {
  const StatusOr<Millis> duration = protocol::ParseDuration(text);
  if (duration.ok()) {
    return now.wall + *duration;
  }
  StatusOr<WallTime> time = protocol::ParseTimestamp(text);
  // Text that looks like a date gets the error of the date parser.
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

StatusOr<JobState> ParseStateName(const std::string& text) {
  if (const std::optional<JobState> state = ParseJobState(text)) {
    return *state;
  }
  return InvalidArgument(
      "expected scheduled, ready, leased, dead or finished, found " + protocol::Quoted(text),
      "invalid_state");
}

Status CheckNoMembers(const RouteInput& input) {
  if (protocol::IsBlank(input.request.body)) {
    return OkStatus();
  }
  return protocol::ReadJsonObject(
      input.request.body, [](std::string_view name, const protocol::JsonValue&) {
        return InvalidArgument("member " + protocol::Quoted(name) +
                                   ": is unknown; this request takes none, send {} or no body",
                               "unknown_member");
      });
}

Handled EnqueueJobs(const RouteInput& input) {
  const Request& request = input.request;
  Quota quota = QuotaOf({.role = request.role, .user = request.user}, input.user_jobs_max);
  engine::Enqueue enqueue{
      .jobs = {}, .user = std::move(quota.user), .user_jobs_max = quota.jobs_max};
  const bool is_lines = request.content_type == kLinesType;
  if (is_lines) {
    DELAYD_ASSIGN_OR_RETURN(
        const bool is_read,
        input.lines->Read(
            request.body, kBodyStepBytes, input.payload_bytes_max, limits::kEnqueueBatchJobsMax));
    if (!is_read) {
      return ReadOn{};
    }
    enqueue.jobs = input.lines->TakeJobs();
    if (enqueue.jobs.empty()) {
      return InvalidArgument("the body holds no job; send one job a line");
    }
    enqueue.brief = request.wants_minimal;
  } else {
    DELAYD_ASSIGN_OR_RETURN(JobSpec job,
                            protocol::ParseJobSpec(request.body, input.payload_bytes_max));
    enqueue.jobs.push_back(std::move(job));
  }
  DELAYD_RETURN_IF_ERROR(CheckRepeatable(request, enqueue.jobs));
  const ReplyForm form = !is_lines       ? ReplyForm::kEnqueuedOne
                         : enqueue.brief ? ReplyForm::kEnqueuedIds
                                         : ReplyForm::kEnqueuedLines;
  return Order{std::move(enqueue), form};
}

Handled ListJobs(const RouteInput& input) {
  engine::List list;
  for (const auto& [name, value] : input.query) {
    DELAYD_RETURN_IF_ERROR(SetListParameter(name, value, input.now, &list)
                               .WithContext("query parameter '" + name + "'"));
  }
  return Order{std::move(list), ReplyForm::kJobList};
}

Handled ShowJob(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(JobRef job, JobRefOf(input));
  return Order{engine::Show{std::move(job)}, ReplyForm::kOneJob};
}

Handled CancelJob(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(JobRef job, JobRefOf(input));
  DELAYD_ASSIGN_OR_RETURN(std::vector<std::string> tags, ParseIfMatch(input.request.if_match));
  return Order{engine::Cancel{std::move(job), std::move(tags)}, ReplyForm::kOneJob};
}

Handled RescheduleJob(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(JobRef job, JobRefOf(input));
  DELAYD_ASSIGN_OR_RETURN(const protocol::RescheduleRequest change,
                          protocol::ParseRescheduleRequest(input.request.body));
  DELAYD_ASSIGN_OR_RETURN(std::vector<std::string> tags, ParseIfMatch(input.request.if_match));
  if (change.touch) {
    return Order{engine::Touch{std::move(job), std::move(tags)}, ReplyForm::kOneJob};
  }
  return Order{engine::Reschedule{std::move(job), change.due, change.priority, std::move(tags)},
               ReplyForm::kOneJob};
}

Handled KickJob(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(JobRef job, JobRefOf(input));
  DELAYD_RETURN_IF_ERROR(CheckNoMembers(input));
  return Order{engine::Kick{std::move(job)}, ReplyForm::kOneJob};
}

Handled LeaseOneJob(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(JobRef job, JobRefOf(input));
  constexpr std::array<std::string_view, 2> kTakes = {"lease", "client"};
  DELAYD_ASSIGN_OR_RETURN(const protocol::LeaseRequest wish,
                          protocol::ParseLeaseRequest(input.request.body, kTakes));
  return Order{engine::LeaseJob{std::move(job), wish.lease, wish.client}, ReplyForm::kLeased};
}

Handled AckLeases(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(std::vector<LeaseToken> tokens,
                          protocol::ParseAckRequest(input.request.body));
  return Order{engine::AckMany{std::move(tokens)}, ReplyForm::kAcked};
}

Handled AckLease(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(const LeaseToken token, ParseLeaseToken(input.captures[0]));
  DELAYD_RETURN_IF_ERROR(CheckNoMembers(input));
  return Order{engine::Ack{token}, ReplyForm::kOneJob};
}

Handled NackLease(const RouteInput& input) {
  constexpr std::array<std::string_view, 4> kTakes = {
      "delay", "error", "priority", "counts_as_attempt"};
  DELAYD_ASSIGN_OR_RETURN(const LeaseCall call, ParseLeaseCall(input, kTakes));
  return Order{engine::Nack{call.token,
                            call.change.delay,
                            call.change.error,
                            call.change.priority,
                            call.change.counts_as_attempt},
               ReplyForm::kOneJob};
}

Handled BuryLease(const RouteInput& input) {
  constexpr std::array<std::string_view, 2> kTakes = {"error", "priority"};
  DELAYD_ASSIGN_OR_RETURN(const LeaseCall call, ParseLeaseCall(input, kTakes));
  return Order{engine::Bury{call.token, call.change.error, call.change.priority},
               ReplyForm::kOneJob};
}

Handled ExtendLease(const RouteInput& input) {
  constexpr std::array<std::string_view, 1> kTakes = {"lease"};
  DELAYD_ASSIGN_OR_RETURN(const LeaseCall call, ParseLeaseCall(input, kTakes));
  return Order{engine::Extend{call.token, call.change.lease}, ReplyForm::kOneJob};
}

}  // namespace delayd::http
