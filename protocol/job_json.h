// protocol/job_json.h — jobs and requests as JSON, in both directions.
//
// What:    the daemon reads specs and writes jobs; the command line writes specs and reads jobs.
//          Payloads survive byte for byte: "payload" holds valid UTF-8, "payload_base64" anything
//          else.
// Errors:  kInvalidArgument naming the member ("member 'delay': ...") and, for an unknown one, the
//          nearest known name. In NDJSON the line is named ("line 7: ..."), counted from 1; blank
//          lines are skipped but counted.
// Threads: pure functions; each thread has its own parser.
// Cost:    simdjson to read, Boost.JSON to write; both stay out of this header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/job.h"
#include "base/status.h"

namespace delayd::protocol {

// Members: queue, delay | due, payload | payload_base64, key, priority, lease, max_attempts,
// expires_after, buried, on_conflict, touch_delay, and, for a job that comes from another store,
// created, attempt, last_error and the members of story_json.h. "payload" may be any JSON value: a
// string stands for its bytes, any other value for its own JSON text. Any other member may be null,
// which is the same as absent. Queue and key are validated here too, so that their errors name the
// line.
StatusOr<JobSpec> ParseJobSpec(std::string_view json, size_t payload_bytes_max);

// The jobs of a body, one a line, read in as many steps as the caller likes.
class JobSpecLines {
 public:
  // Reads on in `ndjson`, the same text each time, until `bytes` of it have been read or nothing is
  // left, which is true.
  StatusOr<bool> Read(std::string_view ndjson,
                      size_t bytes,
                      size_t payload_bytes_max,
                      size_t jobs_max);

  std::vector<JobSpec> TakeJobs() { return std::move(jobs_); }

 private:
  size_t at_ = 0;
  size_t line_ = 1;
  std::vector<JobSpec> jobs_;
};

std::string JobSpecToJson(const JobSpec& spec);

// For imports: reads a job as JobToJson wrote it. Members that only the daemon sets (id,
// lease_token and so on) are skipped; a dead job becomes a buried one, a finished job is refused.
StatusOr<JobSpec> ParseExportedJob(std::string_view json, size_t payload_bytes_max);

// Members as openapi.json describes a Job; those that would say nothing are left out.
std::string JobToJson(const JobView& job);
StatusOr<JobView> ParseJob(std::string_view json);

struct JobPage {
  std::vector<JobView> jobs;
  std::string next_cursor;  // empty: this is the last page
};

// As a cursor it leads to the first page.
inline constexpr std::string_view kFirstPageCursor = "0-0";

std::string JobPageToJson(const JobPage& page);  // {"jobs": [...], "next_cursor": "..."}
StatusOr<JobPage> ParseJobPage(std::string_view json);

// POST /v1/jobs with NDJSON answers one line per job, in order, each with `existed`.
struct EnqueuedJob {
  JobView job;
  bool existed = false;
};

std::string EnqueuedToJson(const EnqueuedJob& job);
// The short answer: {"id": 4711, "existed": false}. For a job that existed and is dead or finished,
// also its state, and whether it was cancelled or acked.
std::string EnqueuedIdToJson(JobId id,
                             bool existed,
                             std::optional<JobState> ended = std::nullopt,
                             bool cancelled = false);
StatusOr<EnqueuedJob> ParseEnqueued(std::string_view json);

// PATCH /v1/jobs/{id}: {"delay" | "due", "priority"}, or {"touch": true} alone.
struct RescheduleRequest {
  bool touch = false;
  std::optional<DueSpec> due;
  std::optional<uint32_t> priority;
};

StatusOr<RescheduleRequest> ParseRescheduleRequest(std::string_view json);
std::string RescheduleRequestToJson(const RescheduleRequest& request);

// POST /v1/queues/{queue}/lease: {"count", "wait", "lease", "client"}; an empty body takes the
// defaults.
struct LeaseRequest {
  uint32_t count = 1;
  Millis wait{0};
  std::optional<Millis> lease;
  std::string client;  // the worker's name, for the job's history
};

inline constexpr std::array<std::string_view, 4> kLeaseMembers = {
    "count", "wait", "lease", "client"};

// `takes` is a subset of kLeaseMembers; any other member is refused as unknown. A lease of one job
// by id (POST /v1/jobs/{id}/lease) has no count and no wait.
StatusOr<LeaseRequest> ParseLeaseRequest(std::string_view json,
                                         std::span<const std::string_view> takes = kLeaseMembers);
std::string LeaseRequestToJson(const LeaseRequest& request);

// POST /v1/leases/{token}/nack | bury | extend: each takes some of these members. An empty body is
// allowed.
struct LeaseChange {
  std::optional<Millis> delay;
  std::optional<Millis> lease;
  std::string error;
  std::optional<uint32_t> priority;
  bool counts_as_attempt = true;
};

inline constexpr std::array<std::string_view, 5> kLeaseChangeMembers = {
    "delay", "lease", "error", "priority", "counts_as_attempt"};

// `takes` is a subset of kLeaseChangeMembers; any other member is refused as unknown.
StatusOr<LeaseChange> ParseLeaseChange(
    std::string_view json, std::span<const std::string_view> takes = kLeaseChangeMembers);
std::string LeaseChangeToJson(const LeaseChange& change);

// POST /v1/queues/{queue}/pause: {"for": "10m", "create": true}; an empty body pauses the queue
// until it is resumed.
struct PauseRequest {
  std::optional<Millis> duration;
  bool create = false;
};

StatusOr<PauseRequest> ParsePauseRequest(std::string_view json);
std::string PauseRequestToJson(const PauseRequest& request);

// POST /v1/queues/{queue}/kick: {"count": 100}, answered with {"kicked": 7}.
StatusOr<uint32_t> ParseKickRequest(std::string_view json);
std::string KickRequestToJson(uint32_t count);
std::string KickedToJson(uint64_t count);
StatusOr<uint64_t> ParseKicked(std::string_view json);

}  // namespace delayd::protocol
