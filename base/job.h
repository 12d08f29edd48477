// base/job.h — what a job is: its identity, what a client may ask for, and what a client is told.
//
// Units:   WallTime and Millis (base/time.h).
// Errors:  ValidateQueueName, ValidateKey and ParseLeaseToken return a Status that names the bad
//          part.
// Threads: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace delayd {

enum class JobId : uint64_t {};
enum class QueueId : uint32_t {};

constexpr uint64_t ToInt(JobId id) {
  return static_cast<uint64_t>(id);
}

constexpr uint32_t ToInt(QueueId id) {
  return static_cast<uint32_t>(id);
}

// The states a client sees. On disk only pending (scheduled, ready and leased alike), dead and
// finished occur.
enum class JobState : uint8_t {
  kScheduled = 1,  // waits for its due time
  kReady = 2,      // due, waits for a worker
  kLeased = 3,     // handed out
  kDead = 4,       // attempts used up, expired, or buried
  kFinished = 5,   // acked or cancelled
};
std::string_view JobStateName(JobState state);

// How a finished job ended.
constexpr std::string_view OutcomeName(bool cancelled) {
  return cancelled ? "cancelled" : "acked";
}

std::optional<JobState> ParseJobState(std::string_view name);

// Which clock a due time was promised on. Embedded in records: append only, never renumber.
enum class DueKind : uint8_t {
  kRelative = 1,  // "in 30m": real time on the boot clock; its wall time stands in after a reboot
  kAbsolute = 2,  // "at 09:00Z": the wall clock, whatever it is set to
};

struct DueAfter {
  Millis delay{0};
};

struct DueAt {
  WallTime at;
};

using DueSpec = std::variant<DueAfter, DueAt>;

// What happens to an enqueue whose key already belongs to a live job with other content.
enum class OnConflict : uint8_t {
  kFail,     // refused
  kKeep,     // answered with that job, whatever its content
  kReplace,  // that job gets this content and this due time, unless a worker has it
};
std::string_view OnConflictName(OnConflict rule);
std::optional<OnConflict> ParseOnConflict(std::string_view name);

// One step in the story of a job.
struct JobEvent {
  // Embedded in records: append only, never renumber.
  enum class Kind : uint8_t {
    kNacked = 1,
    kLeaseExpired = 2,
    kBuried = 3,
    kDied = 4,  // too late to be handed out
    kKicked = 5,
    kMoved = 6,
    kAcked = 7,
    kCancelled = 8,
    kReplaced = 9,  // another enqueue under its key gave it other content
  };
  Kind kind = Kind::kNacked;
  WallTime at;
  std::string who;   // the worker, if there was one and it told its name
  std::string what;  // the worker's error
  friend bool operator==(const JobEvent&, const JobEvent&) = default;
};

// "nacked", "lease_expired" and so on.
std::string_view JobEventName(JobEvent::Kind kind);
std::optional<JobEvent::Kind> ParseJobEvent(std::string_view name);

// What has happened to a job so far.
struct JobStory {
  uint32_t timeouts = 0;  // leases that ran out
  uint32_t releases = 0;  // nacks
  uint32_t buries = 0;
  uint32_t kicks = 0;
  std::vector<JobEvent> history;  // the latest, oldest first; at most limits::kJobEventsMax
};

// The past of a job that was in another store before. Its id there is not part of it.
struct JobPast : JobStory {
  std::optional<WallTime> created;  // default and latest allowed value: now
  uint32_t attempts = 0;            // hand-outs that ended without an ack
  std::string last_error;
  // The fingerprint of the request that the job's key stands for; 0: that of this request. Without
  // it, a due time that used to be a delay, and its former queue's defaults, would make the same
  // request look like a different one.
  uint64_t fingerprint = 0;
};

// What a client asks for. Front ends fill it, the engine validates it.
struct JobSpec {
  std::string queue = "default";
  DueSpec due = DueAfter{};
  std::string payload;
  std::string key;  // empty: none
  std::optional<uint32_t> priority;
  std::optional<Millis> lease;
  std::optional<uint32_t> max_attempts;        // 0: no limit
  std::optional<Millis> expires_after;         // counted from the due time
  bool buried = false;                         // begins among the dead, until it is kicked
  OnConflict on_conflict = OnConflict::kFail;  // anything else needs a key
  std::optional<Millis> touch_delay;  // what touch uses again; default: the job's delay, if any
  std::shared_ptr<JobPast> past;      // none: its life begins here
};

// A job by its id or by its caller's key.
struct KeyRef {
  std::string queue;
  std::string key;
};

using JobRef = std::variant<JobId, KeyRef>;
// "job 42" or "key order:1001 in queue orders", for messages.
std::string DescribeJobRef(const JobRef& ref);

// One hand-out of one job. It fences acks: a token of an earlier hand-out, or of an earlier run of
// the daemon, is stale. Written as "ID-EPOCH-SEQUENCE", the last two in hexadecimal.
struct LeaseToken {
  JobId job{};
  uint64_t epoch = 0;     // rises with every start of the daemon
  uint64_t sequence = 0;  // rises with every hand-out
  friend bool operator==(const LeaseToken&, const LeaseToken&) = default;
};

std::string FormatLeaseToken(const LeaseToken& token);
StatusOr<LeaseToken> ParseLeaseToken(std::string_view text);

// What a client is told about a job.
struct JobView : JobStory {  // the history is absent in lists without payloads
  JobId id{};
  std::string queue;
  std::string key;
  JobState state = JobState::kScheduled;
  DueKind due_kind = DueKind::kRelative;
  WallTime due;
  // The part of `due` that comes from steps of the wall clock since a delay was promised.
  Millis due_step{0};
  WallTime created;
  uint32_t priority = 0;
  Millis lease{0};
  uint32_t attempt = 0;  // hand-outs so far, a running one included
  uint32_t max_attempts = 0;
  std::optional<Millis> expires_after;
  std::string last_error;
  std::optional<std::string> payload;  // absent in lists
  uint64_t payload_bytes = 0;
  std::optional<Millis> delay;  // as asked for at enqueue; none: an absolute due time was asked for
  uint64_t fingerprint = 0;     // of its content, if it has a key
  // Time until it is due, or until the lease ends, on the clock it was promised on. Scheduled and
  // leased jobs only.
  std::optional<Millis> time_left;

  // How often it was handed out in its life. A running hand-out counts, and so does one that has
  // ended, but not one that ended with the daemon.
  uint32_t reserves = 0;

  // Finished jobs.
  std::optional<WallTime> finished;
  std::string outcome;  // OutcomeName

  // Leased jobs.
  std::optional<LeaseToken> lease_token;  // only in the answer to the lease request itself
  std::optional<WallTime> lease_expires;
  BootTime lease_ends;  // the same moment, on the clock that counts
  std::optional<Millis> lateness;
  std::string client;  // the worker's name, if it told one

  std::string etag;  // TagOf, in answers about one job

  // Of a finished job whose queue keeps no history: priority, lease and much else are not known.
  bool is_summary() const { return state == JobState::kFinished && lease == Millis(0); }
};

// Identifies this exact state of a job, for changes that are meant only for it (HTTP's ETag): two
// views have the same tag if nothing has happened to the job in between.
std::string TagOf(const JobView& job);

// 1 to 200 bytes of letters, digits and - + / ; . $ _ ( ), not starting with '-': the names that
// beanstalk clients may use.
bool IsQueueName(std::string_view name);
Status ValidateQueueName(std::string_view name);
// 1 to 200 bytes of UTF-8 without control characters.
Status ValidateKey(std::string_view key);

}  // namespace delayd
