#include "protocol/job_json.h"

#include <limits>

#include "base/coding.h"
#include "base/limits.h"
#include "base/time.h"
#include "protocol/base64.h"
#include "protocol/duration.h"
#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"
#include "protocol/nearest.h"
#include "protocol/story_json.h"

namespace delayd::protocol {
namespace {

constexpr std::string_view kRelative = "relative";
constexpr std::string_view kAbsolute = "absolute";

void WritePayload(const JobView& job, JsonObjectWriter* writer) {
  if (job.payload.has_value()) {
    if (IsUtf8(*job.payload)) {
      writer->String("payload", *job.payload);
    } else {
      writer->String("payload_base64", EncodeBase64(*job.payload));
    }
  }
  if (!job.is_summary()) {
    writer->Number("payload_bytes", job.payload_bytes);
  }
}

void WriteLease(const JobView& job, JsonObjectWriter* writer) {
  if (job.lease_token.has_value()) {
    writer->String("lease_token", FormatLeaseToken(*job.lease_token));
  }
  if (!job.client.empty()) {
    writer->String("client", job.client);
  }
  if (job.lease_expires.has_value()) {
    writer->String("lease_expires", FormatUtc(*job.lease_expires));
  }
  if (job.lateness.has_value()) {
    // A job is never early, so its lateness is never negative.
    writer->Number("lateness_ms",
                   static_cast<uint64_t>(std::max<int64_t>(0, job.lateness->count())));
  }
}

void WriteJob(const JobView& job, JsonObjectWriter* writer) {
  writer->Number("id", ToInt(job.id));
  writer->String("queue", job.queue);
  if (!job.key.empty()) {
    writer->String("key", job.key);
  }
  writer->String("state", JobStateName(job.state));
  writer->String("due", FormatUtc(job.due));
  const bool whole = !job.is_summary();
  if (whole) {
    writer->String("due_kind", job.due_kind == DueKind::kRelative ? kRelative : kAbsolute);
  }
  writer->String("created", FormatUtc(job.created));
  if (whole) {
    writer->Number("priority", job.priority);
    writer->String("lease", FormatDuration(job.lease));
  }
  writer->Number("attempt", job.attempt);
  if (whole) {
    writer->Number("max_attempts", job.max_attempts);
  }
  if (job.expires_after.has_value()) {
    writer->String("expires_after", FormatDuration(*job.expires_after));
  }
  // Only an import into another store needs these; a worker, which holds a lease, moves no job.
  const bool is_whole = job.payload.has_value() && !job.lease_token.has_value();
  if (job.delay.has_value() && (*job.delay > Millis(0) || is_whole)) {
    writer->String("touch_delay", FormatDuration(*job.delay));
  }
  WritePayload(job, writer);
  if (job.fingerprint != 0 && is_whole) {
    writer->String("fingerprint", FormatFingerprint(job.fingerprint));
  }
  if (!job.last_error.empty()) {
    writer->String("last_error", job.last_error);
  }
  if (job.finished.has_value()) {
    writer->String("finished", FormatUtc(*job.finished));
  }
  if (!job.outcome.empty()) {
    writer->String("outcome", job.outcome);
  }
  if (job.reserves != 0) {
    writer->Number("reserves", job.reserves);
  }
  WriteStory(job, writer);
  WriteLease(job, writer);
  if (!job.etag.empty()) {
    writer->String("etag", job.etag);
  }
}

Status SetDueKind(std::string_view name, const JsonValue& value, DueKind* out) {
  std::string text;
  DELAYD_RETURN_IF_ERROR(SetString(name, value, &text));
  if (text != kRelative && text != kAbsolute) {
    return InMember(
        name,
        InvalidArgument("is " + Quoted(text) + ", not 'relative' or 'absolute'", "invalid_member"));
  }
  *out = text == kRelative ? DueKind::kRelative : DueKind::kAbsolute;
  return OkStatus();
}

Status SetId(std::string_view name, const JsonValue& value, JobId* out) {
  uint64_t id = 0;
  DELAYD_RETURN_IF_ERROR(SetUint64(name, value, limits::kJobIdMax, &id));
  *out = JobId{id};
  return OkStatus();
}

Status SetPayload(std::string_view name, const JsonValue& value, JobView* job) {
  std::string text;
  DELAYD_RETURN_IF_ERROR(SetString(name, value, &text));
  if (name == "payload") {
    job->payload = std::move(text);
    return OkStatus();
  }
  StatusOr<std::string> bytes = DecodeBase64(text);
  if (!bytes.ok()) {
    return InMember(name, bytes.status());
  }
  job->payload = std::move(bytes).value();
  return OkStatus();
}

Status SetLeaseMember(std::string_view name, const JsonValue& value, JobView* job) {
  if (name == "lease_token") {
    std::string text;
    DELAYD_RETURN_IF_ERROR(SetString(name, value, &text));
    StatusOr<LeaseToken> token = ParseLeaseToken(text);
    if (!token.ok()) {
      return InMember(name, token.status());
    }
    job->lease_token = *token;
  } else if (name == "lease_expires") {
    return SetTime(name, value, &job->lease_expires);
  } else if (name == "lateness_ms") {
    uint64_t millis = 0;
    DELAYD_RETURN_IF_ERROR(SetUint64(name, value, std::numeric_limits<int64_t>::max(), &millis));
    job->lateness = Millis(static_cast<int64_t>(millis));
  } else if (name == "client") {
    return SetString(name, value, &job->client);
  } else if (name == "reserves") {
    return SetUint32(name, value, &job->reserves);
  }
  // Members that only a newer daemon knows are skipped.
  return IsStoryMember(name) ? SetStoryMember(name, value, job) : OkStatus();
}

Status SetRareMember(std::string_view name, const JsonValue& value, JobView* job) {
  if (name == "expires_after") {
    return SetDuration(name, value, &job->expires_after);
  }
  if (name == "payload" || name == "payload_base64") {
    return SetPayload(name, value, job);
  }
  if (name == "payload_bytes") {
    return SetUint64(name, value, kCountMax, &job->payload_bytes);
  }
  if (name == "last_error") {
    return SetString(name, value, &job->last_error);
  }
  if (name == "finished") {
    return SetTime(name, value, &job->finished);
  }
  if (name == "outcome") {
    return SetString(name, value, &job->outcome);
  }
  if (name == "touch_delay") {
    return SetDuration(name, value, &job->delay);
  }
  if (name == "fingerprint") {
    return SetFingerprint(name, value, &job->fingerprint);
  }
  if (name == "etag") {
    return SetString(name, value, &job->etag);
  }
  return SetLeaseMember(name, value, job);
}

Status SetJobMember(std::string_view name, const JsonValue& value, JobView* job) {
  if (name == "id") {
    return SetId(name, value, &job->id);
  }
  if (name == "queue") {
    return SetString(name, value, &job->queue);
  }
  if (name == "key") {
    return SetString(name, value, &job->key);
  }
  if (name == "state") {
    return SetState(name, value, &job->state);
  }
  if (name == "due") {
    return SetTime(name, value, &job->due);
  }
  if (name == "due_kind") {
    return SetDueKind(name, value, &job->due_kind);
  }
  if (name == "created") {
    return SetTime(name, value, &job->created);
  }
  if (name == "priority") {
    return SetUint32(name, value, &job->priority);
  }
  if (name == "lease") {
    return SetDuration(name, value, &job->lease);
  }
  if (name == "attempt") {
    return SetUint32(name, value, &job->attempt);
  }
  if (name == "max_attempts") {
    return SetUint32(name, value, &job->max_attempts);
  }
  return SetRareMember(name, value, job);
}

}  // namespace

std::string JobToJson(const JobView& job) {
  JsonObjectWriter writer;
  WriteJob(job, &writer);
  return writer.Take();
}

StatusOr<JobView> ParseJob(std::string_view json) {
  JobView job;
  DELAYD_RETURN_IF_ERROR(ReadAnswer(
      json, {"id", "queue", "state"}, [&](std::string_view name, const JsonValue& value) {
        return SetJobMember(name, value, &job);
      }));
  return job;
}

std::string JobPageToJson(const JobPage& page) {
  return JsonPage("jobs", page.jobs, JobToJson, page.next_cursor);
}

StatusOr<JobPage> ParseJobPage(std::string_view json) {
  JobPage page;
  DELAYD_RETURN_IF_ERROR(
      ReadAnswer(json, {"jobs"}, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "jobs") {
          return SetObjects(name, value, ParseJob, &page.jobs);
        }
        return name == "next_cursor" ? SetString(name, value, &page.next_cursor) : OkStatus();
      }));
  return page;
}

std::string EnqueuedToJson(const EnqueuedJob& job) {
  JsonObjectWriter writer;
  WriteJob(job.job, &writer);
  writer.Bool("existed", job.existed);
  return writer.Take();
}

std::string EnqueuedIdToJson(JobId id,
                             bool existed,
                             std::optional<JobState> ended,
                             bool cancelled) {
  std::string json = R"({"id":)" + std::to_string(ToInt(id)) +
                     (existed ? R"(,"existed":true)" : R"(,"existed":false)");
  if (ended == JobState::kFinished) {
    json.append(R"(,"state":"finished","outcome":")").append(OutcomeName(cancelled)).append("\"");
  } else if (ended == JobState::kDead) {
    json += R"(,"state":"dead")";
  }
  return json + '}';
}

StatusOr<EnqueuedJob> ParseEnqueued(std::string_view json) {
  EnqueuedJob job;
  DELAYD_RETURN_IF_ERROR(
      ReadAnswer(json, {"id"}, [&](std::string_view name, const JsonValue& value) -> Status {
        return name == "existed" ? SetBool(name, value, &job.existed)
                                 : SetJobMember(name, value, &job.job);
      }));
  return job;
}

}  // namespace delayd::protocol
