#include <algorithm>
#include <array>

#include "base/coding.h"
#include "base/limits.h"
#include "base/size_text.h"
#include "base/time.h"
#include "protocol/base64.h"
#include "protocol/duration.h"
#include "protocol/job_json.h"
#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"
#include "protocol/nearest.h"
#include "protocol/story_json.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 22> kJobMembers = {
    "queue",       "delay",   "due",          "payload",       "payload_base64", "key",
    "priority",    "lease",   "max_attempts", "expires_after", "buried",         "on_conflict",
    "touch_delay", "created", "attempt",      "last_error",    "timeouts",       "releases",
    "buries",      "kicks",   "history",      "fingerprint"};

// Members that JobToJson writes and that mean nothing to an enqueue.
constexpr std::array<std::string_view, 13> kReadOnlyMembers = {"id",
                                                               "state",
                                                               "due_kind",
                                                               "finished",
                                                               "outcome",
                                                               "lease_token",
                                                               "client",
                                                               "lease_expires",
                                                               "lateness_ms",
                                                               "reserves",
                                                               "existed",
                                                               "line",
                                                               "etag"};

// The spec while its members arrive, in any order.
struct Draft {
  JobSpec spec;
  DueMembers due;
  bool has_payload = false;
  uint64_t exported_payload_bytes = 0;
  bool has_null_payload = false;
  bool was_leased = false;
  bool was_finished = false;
};

Status TooLarge(size_t bytes, size_t bytes_max) {
  return ResourceExhausted("payload has " + std::to_string(bytes) + " bytes and the limit is " +
                               FormatSize(bytes_max) + "; store it elsewhere and send a reference",
                           "payload_too_large");
}

// Checked before parsing: a single member of many megabytes would take a second, in which no other
// client is served.
Status CheckSize(std::string_view json, size_t payload_bytes_max) {
  constexpr size_t kEscapedByte = 6;           // \u0000
  constexpr size_t kRest = size_t{64} * 1024;  // all other members are short
  if (json.size() <= kEscapedByte * payload_bytes_max + kRest) {
    return OkStatus();
  }
  return ResourceExhausted("a job of " + FormatSize(json.size()) +
                               " of JSON is larger than any with a payload within " +
                               "the limit of " + FormatSize(payload_bytes_max) +
                               "; store the payload elsewhere and send a reference",
                           "payload_too_large");
}

Status SetPayload(std::string_view name,
                  const JsonValue& value,
                  size_t payload_bytes_max,
                  Draft* draft) {
  if (name == "payload_base64" && value.kind == JsonKind::kNull) {
    return OkStatus();  // unlike a "payload" of null, which is a payload: the text null
  }
  if (draft->has_payload) {
    return InMember(name,
                    InvalidArgument("stands beside the other payload member; give either payload "
                                    "or payload_base64",
                                    "invalid_member"));
  }
  draft->has_payload = true;
  std::string bytes;
  if (name == "payload") {
    bytes = value.text;
  } else {
    const StatusOr<std::string> text = JsonToString(value);
    if (!text.ok()) {
      return InMember(name, text.status());
    }
    StatusOr<std::string> decoded = DecodeBase64(*text);
    if (!decoded.ok()) {
      return InMember(name, decoded.status());
    }
    bytes = std::move(decoded).value();
  }
  if (bytes.size() > payload_bytes_max) {
    return InMember(name, TooLarge(bytes.size(), payload_bytes_max));
  }
  draft->spec.payload = std::move(bytes);
  return OkStatus();
}

Status SetName(std::string_view name,
               const JsonValue& value,
               Status (*validate)(std::string_view),
               std::string* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  DELAYD_RETURN_IF_ERROR(SetString(name, value, out));
  return InMember(name, validate(*out));
}

Status SetOnConflict(std::string_view name, const JsonValue& value, OnConflict* out) {
  if (value.kind == JsonKind::kNull) {
    return OkStatus();
  }
  std::string text;
  DELAYD_RETURN_IF_ERROR(SetString(name, value, &text));
  const std::optional<OnConflict> rule = ParseOnConflict(text);
  if (!rule.has_value()) {
    return InMember(
        name,
        InvalidArgument("is " + Quoted(text) + "; use fail, keep or replace", "invalid_member"));
  }
  *out = *rule;
  return OkStatus();
}

JobPast* PastOf(JobSpec* spec) {
  if (spec->past == nullptr) {
    spec->past = std::make_shared<JobPast>();
  }
  return spec->past.get();
}

Status SetPast(std::string_view name, const JsonValue& value, JobSpec* spec) {
  if (name == "created") {
    return SetTime(name, value, &PastOf(spec)->created);
  }
  if (name == "attempt") {
    return SetUint32(name, value, &PastOf(spec)->attempts);
  }
  if (name == "last_error") {
    return SetString(name, value, &PastOf(spec)->last_error);
  }
  if (name == "fingerprint") {
    return SetFingerprint(name, value, &PastOf(spec)->fingerprint);
  }
  return IsStoryMember(name) ? SetStoryMember(name, value, PastOf(spec))
                             : UnknownMember(name, kJobMembers);
}

Status SetRareMember(std::string_view name, const JsonValue& value, JobSpec* spec) {
  if (name == "on_conflict") {
    return SetOnConflict(name, value, &spec->on_conflict);
  }
  if (name == "touch_delay") {
    return SetDuration(name, value, &spec->touch_delay);
  }
  return SetPast(name, value, spec);
}

Status SetMember(std::string_view name,
                 const JsonValue& value,
                 size_t payload_bytes_max,
                 Draft* draft) {
  if (name == "queue") {
    return SetName(name, value, ValidateQueueName, &draft->spec.queue);
  }
  if (name == "key") {
    return SetName(name, value, ValidateKey, &draft->spec.key);
  }
  if (DueMembers::Has(name)) {
    return draft->due.Set(name, value);
  }
  if (name == "payload" || name == "payload_base64") {
    return SetPayload(name, value, payload_bytes_max, draft);
  }
  if (name == "priority") {
    return SetUint32(name, value, &draft->spec.priority);
  }
  if (name == "lease") {
    return SetDuration(name, value, &draft->spec.lease);
  }
  if (name == "max_attempts") {
    return SetUint32(name, value, &draft->spec.max_attempts);
  }
  if (name == "expires_after") {
    return SetDuration(name, value, &draft->spec.expires_after);
  }
  if (name == "buried") {
    return SetBool(name, value, &draft->spec.buried);
  }
  return SetRareMember(name, value, &draft->spec);
}

// Translates an exported job's state for the new job.
Status SetExportedState(const JsonValue& value, Draft* draft) {
  JobState state = JobState::kScheduled;
  DELAYD_RETURN_IF_ERROR(SetState("state", value, &state));
  draft->was_finished = state == JobState::kFinished;
  draft->spec.buried = draft->spec.buried || state == JobState::kDead;
  draft->was_leased = state == JobState::kLeased;
  return OkStatus();
}

Status SetExportedMember(std::string_view name,
                         const JsonValue& value,
                         size_t payload_bytes_max,
                         Draft* draft) {
  if (name == "state") {
    return SetExportedState(value, draft);
  }
  if (name == "payload_bytes") {
    return SetUint64(name, value, kCountMax, &draft->exported_payload_bytes);
  }
  draft->has_null_payload |= name == "payload" && value.kind == JsonKind::kNull;
  return std::ranges::find(kReadOnlyMembers, name) != kReadOnlyMembers.end()
             ? OkStatus()
             : SetMember(name, value, payload_bytes_max, draft);
}

// A list tells a payload's size and leaves the payload out, and a finished job may have lost its
// own. A payload of another size has been edited.
Status CheckExported(const Draft& draft) {
  // jq writes null for a member that is missing.
  const bool lost =
      draft.exported_payload_bytes > 0 &&
      (draft.spec.payload.empty() || (draft.has_null_payload && draft.exported_payload_bytes != 4));
  if (draft.was_finished) {
    const std::string_view again = draft.has_payload && !lost ? " or its state" : "";
    return InMember("state",
                    InvalidArgument("is finished: the job is done, and would be done again; leave "
                                    "the line" +
                                        std::string(again) + " out",
                                    "finished_job"));
  }
  if (lost) {
    return InMember(
        "payload_bytes",
        InvalidArgument("is " + std::to_string(draft.exported_payload_bytes) +
                            ", and the line has no payload; take it from delayctl "
                            "export, which has the payloads that are kept, or leave it out",
                        "invalid_member"));
  }
  return OkStatus();
}

StatusOr<JobSpec> Parse(std::string_view json, size_t payload_bytes_max, bool exported) {
  Draft draft;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        return exported ? SetExportedMember(name, value, payload_bytes_max, &draft)
                        : SetMember(name, value, payload_bytes_max, &draft);
      }));
  DELAYD_RETURN_IF_ERROR(CheckExported(draft));
  DELAYD_ASSIGN_OR_RETURN(const std::optional<DueSpec> due, draft.due.Take());
  draft.spec.due = due.value_or(draft.spec.due);
  if (draft.was_leased && draft.spec.past != nullptr && draft.spec.past->attempts > 0) {
    --draft.spec.past->attempts;  // the lease that was under way does not count
  }
  return std::move(draft.spec);
}

// A string of quotes and controls is longer than in base64, up to six times its bytes, and the
// daemon's limits promise room for base64. Short texts fit in any form, and people can read them.
void WritePayload(std::string_view payload, JsonObjectWriter* writer) {
  constexpr size_t kShortBytes = 2048;
  if (IsUtf8(payload)) {
    const std::string text = JsonString(payload);
    if (payload.size() <= kShortBytes || text.size() <= payload.size() / 3 * 4) {
      writer->Raw("payload", text);
      return;
    }
  }
  writer->String("payload_base64", EncodeBase64(payload));
}

void WritePast(const JobPast& past, JsonObjectWriter* writer) {
  if (past.created.has_value()) {
    writer->String("created", FormatUtc(*past.created));
  }
  if (past.attempts != 0) {
    writer->Number("attempt", past.attempts);
  }
  if (!past.last_error.empty()) {
    writer->String("last_error", past.last_error);
  }
  if (past.fingerprint != 0) {
    writer->String("fingerprint", FormatFingerprint(past.fingerprint));
  }
  WriteStory(past, writer);
}

}  // namespace

StatusOr<JobSpec> ParseJobSpec(std::string_view json, size_t payload_bytes_max) {
  DELAYD_RETURN_IF_ERROR(CheckSize(json, payload_bytes_max));
  return Parse(json, payload_bytes_max, false);
}

StatusOr<JobSpec> ParseExportedJob(std::string_view json, size_t payload_bytes_max) {
  return Parse(json, payload_bytes_max, true);
}

StatusOr<bool> JobSpecLines::Read(std::string_view ndjson,
                                  size_t bytes,
                                  size_t payload_bytes_max,
                                  size_t jobs_max) {
  const size_t end = bytes < ndjson.size() - at_ ? at_ + bytes : ndjson.size();
  while (at_ < end) {
    // Skips all blank lines of this step in one scan: a body may consist of nothing else.
    const size_t begin = std::min(ndjson.substr(0, end).find_first_not_of(" \t\r\n", at_), end);
    const std::string_view skipped = ndjson.substr(at_, begin - at_);
    line_ += static_cast<size_t>(std::count(skipped.begin(), skipped.end(), '\n'));
    at_ = begin;
    if (at_ == end) {
      break;
    }
    if (jobs_.size() == jobs_max) {
      return ResourceExhausted("line " + std::to_string(line_) + ": the request has more than " +
                                   std::to_string(jobs_max) + " jobs; split it",
                               "body_too_large");
    }
    const std::string_view line = ndjson.substr(at_, ndjson.find('\n', at_) - at_);
    StatusOr<JobSpec> spec = ParseJobSpec(line, payload_bytes_max);
    if (!spec.ok()) {
      return spec.status().WithContext("line " + std::to_string(line_));
    }
    jobs_.push_back(std::move(spec).value());
    at_ += line.size();
  }
  return at_ == ndjson.size();
}

std::string JobSpecToJson(const JobSpec& spec) {
  JsonObjectWriter writer;
  writer.String("queue", spec.queue);
  if (const auto* at = std::get_if<DueAt>(&spec.due)) {
    writer.String("due", FormatUtc(at->at));
  } else if (const Millis delay = std::get<DueAfter>(spec.due).delay; delay > Millis(0)) {
    writer.String("delay", FormatDuration(delay));
  }
  if (!spec.key.empty()) {
    writer.String("key", spec.key);
  }
  if (spec.priority.has_value()) {
    writer.Number("priority", *spec.priority);
  }
  if (spec.lease.has_value()) {
    writer.String("lease", FormatDuration(*spec.lease));
  }
  if (spec.max_attempts.has_value()) {
    writer.Number("max_attempts", *spec.max_attempts);
  }
  if (spec.expires_after.has_value()) {
    writer.String("expires_after", FormatDuration(*spec.expires_after));
  }
  if (spec.buried) {
    writer.Bool("buried", true);
  }
  if (spec.on_conflict != OnConflict::kFail) {
    writer.String("on_conflict", OnConflictName(spec.on_conflict));
  }
  if (spec.touch_delay.has_value()) {
    writer.String("touch_delay", FormatDuration(*spec.touch_delay));
  }
  if (spec.past != nullptr) {
    WritePast(*spec.past, &writer);
  }
  WritePayload(spec.payload, &writer);
  return writer.Take();
}

}  // namespace delayd::protocol
