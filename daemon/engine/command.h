// daemon/engine/command.h — everything that can be asked of the engine, and everything it can
// answer.
//
// What:    front ends turn bytes into a Command and a Reply into bytes; simulation and fuzzing do
//          without the bytes.
// Units:   base/time.h.
// Errors:  a Reply's status; its body is set only when the status is OK.
// Threads: values, moved in and out of the core thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/indirect.h"
#include "base/job.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/engine/queue_settings.h"

#include <boost/container/small_vector.hpp>

namespace delayd::engine {

// Chosen by the front end and returned with the reply. No id is used twice in a run.
using RequestId = uint64_t;

// ---- Commands ----

// Stores all jobs in one commit, or none. Bounded by limits::kEnqueueBatchJobsMax.
struct Enqueue {
  std::vector<JobSpec> jobs;
  // The user whose quota the new jobs count against until they are finished; empty: nobody's.
  std::string user = {};
  uint64_t user_jobs_max = 0;  // more than this are refused as "user_full"; 0: no limit
  bool brief = false;          // answered with EnqueuedIds
};

// `if_tag`, here and below: the command applies only while TagOf the job is one of these; else it
// is refused as "changed". Empty: any tag will do.
struct Cancel {
  JobRef job;
  std::vector<std::string> if_tag = {};
  bool brief = false;  // here and below: the answer has no body
};

// Cancels many jobs by id, each by itself: the refusal of one does not affect the others. At most
// limits::kCancelIdsMax.
struct CancelIds {
  std::vector<JobId> jobs;
};

// Changes the due time, the priority or both; at least one must be given. Refused while the job is
// leased.
struct Reschedule {
  JobRef job;
  std::optional<DueSpec> due;
  std::optional<uint32_t> priority;
  std::vector<std::string> if_tag = {};
};

// Postpones the due time by the delay that the job was enqueued with, counted from now. For
// scheduled and ready jobs that were enqueued with a delay; others are refused by their state or as
// "no_delay".
struct Touch {
  JobRef job;
  std::vector<std::string> if_tag = {};
};

// Sets how the queues behave from now on; a queue that is not named behaves as `defaults`. Not
// durable: the configuration file holds the settings. The reply has no body.
struct Configure {
  QueueSettings defaults;
  std::map<std::string, QueueSettings> queues;
};

// Answered as soon as a job is there, with at most `count` of them; with none when `wait` has
// passed.
struct Lease {
  std::vector<std::string> queues;
  uint32_t count = 1;
  Millis wait{0};
  std::optional<Millis> lease;  // default: the job's own
  std::string client;           // the worker's name, for the job's story; may be empty
};

// Hands out this very job, whatever its queue's pause or caps say: ready, scheduled (before its
// time) or dead (pending again from then on). Answered with Leased and the one job. Refused while
// it is leased.
struct LeaseJob {
  JobRef job;
  std::optional<Millis> lease;  // default: the job's own
  std::string client;
};

struct Ack {
  LeaseToken token;
  bool brief = false;
};

// Acks many jobs, each by itself: a lease that is over does not affect the others. At most
// limits::kLeaseCountMax, as many as one Lease hands out.
struct AckMany {
  std::vector<LeaseToken> tokens;
};

// Gives the job back: it is handed out again after `delay` (default: the retry policy's backoff),
// or is dead when its attempts are used up.
struct Nack {
  LeaseToken token;
  std::optional<Millis> delay;
  std::string error;
  std::optional<uint32_t> priority;  // from now on
  // False: the attempt is not counted, and the job does not die, however many it has had.
  bool counts_as_attempt = true;
};

// Gives the job back untouched: no attempt is used, and it is ready again unless its due time is
// still to come. All that is counted is that it was handed out.
struct GiveBack {
  LeaseToken token;
};

// Moves the job to the dead ones at once, however many attempts are left.
struct Bury {
  LeaseToken token;
  std::string error;
  std::optional<uint32_t> priority;  // from now on
};

// Makes the lease end this long from now (default: the job's own lease).
struct Extend {
  LeaseToken token;
  std::optional<Millis> lease;
};

// Makes a dead or scheduled job ready now. A dead one gets all its attempts back.
struct Kick {
  JobRef job;
};

// Kicks the oldest dead jobs of the queue or, if it has none, the scheduled ones that are due
// soonest. At most limits::kKickCountMax at a time: ask again while Kicked reports as many. Jobs
// whose records cannot be read stay where they are.
struct KickQueue {
  std::string queue;
  uint32_t count = 1;
};

// The queue hands nothing out until Resume, or for `duration` (1 ms to 100 years). Durable. Leases
// go on, and LeaseJob still works.
struct Pause {
  std::string queue;
  std::optional<Millis> duration;
  bool create = false;  // allow a queue that no job was ever put into; else not found
};

struct Resume {
  std::string queue;
  bool is_known = false;  // true: an unknown queue is not paused, and that is no error
};

// The job, with its payload.
struct Show {
  JobRef job;
};

// The job of this queue that would come next: the first to be handed out, the scheduled one that is
// due soonest, or the one that has been dead the longest. With its payload. Not found when there is
// none.
struct Peek {
  enum class Which : uint8_t { kReady, kDelayed, kBuried };

  std::string queue;
  Which which = Which::kReady;
};

struct List {
  std::optional<std::string> queue;
  std::optional<JobState> state;  // none: scheduled, ready and leased
  std::optional<WallTime> due_before;
  std::optional<WallTime> due_after;
  std::string key_prefix;
  uint32_t limit = 0;         // 0: limits::kListLimitDefault
  std::string cursor;         // of the page before; empty: the first page
  bool with_payload = false;  // pages then also end at limits::kListBytesMax
};

struct ListQueues {
  std::optional<std::string> queue;  // none: all
  uint32_t limit = 0;                // 0: limits::kListLimitMax
  std::string cursor = {};           // of the page before; empty: the first page
};

// Selects the jobs of a bulk change: all members that are set must match.
struct JobFilter {
  std::optional<std::string> queue;
  std::optional<JobState> state;  // none: scheduled, ready and leased
  std::optional<WallTime> due_before;
  std::optional<WallTime> due_after;
  std::string key_prefix;
};

// One step of a bulk change: it looks at a bounded number of jobs and changes them in one commit,
// or none. The reply's next_cursor leads to the next step. Nothing is remembered between steps:
// after a crash, the same filter from the beginning does what is left.
struct ChangeMany {
  enum class Action : uint8_t { kCancel, kReschedule, kKick };
  Action action = Action::kCancel;
  JobFilter filter;
  std::optional<DueSpec> due;  // kReschedule: at least one of the two
  std::optional<uint32_t> priority;
  bool dry_run = false;  // counts only
  uint32_t limit = 0;    // of jobs that match; 0: limits::kBulkJobsDefault
  std::string cursor;    // of the step before; empty: the first step
};

// How many scheduled jobs fall due in each step from `from` to `to`; the last step may be shorter.
struct Forecast {
  std::optional<std::string> queue;  // none: all
  WallTime from;
  WallTime to;
  Millis step{0};
};

struct GetStats {};

// On: an Enqueue that would store a new job is refused as "draining"; everything else goes on,
// retries of stored enqueues included. Not durable. Answered with the stats.
struct Drain {
  bool on = true;
};

// Declares the wall clock right as it is now, whatever was seen before. Answered with the stats.
struct AcceptClock {};

// The client of a lease request disconnected before its answer. The request ends empty, and jobs
// that were chosen for it but not handed out yet become ready again, with no attempt used. This
// command has no reply; nor has a request that was still waiting.
struct Abandon {
  RequestId waiting = 0;
};

// The client of a lease request stops waiting but stays connected: if the request still waits, it
// is answered with no job. This command has no reply of its own.
struct EndWait {
  RequestId waiting = 0;
};

using AnyCommand = std::variant<Enqueue,
                                Cancel,
                                CancelIds,
                                Reschedule,
                                Touch,
                                Configure,
                                Lease,
                                LeaseJob,
                                Ack,
                                AckMany,
                                Nack,
                                GiveBack,
                                Bury,
                                Extend,
                                Kick,
                                KickQueue,
                                Pause,
                                Resume,
                                Show,
                                Peek,
                                List,
                                ListQueues,
                                GetStats,
                                AcceptClock,
                                ChangeMany,
                                Forecast,
                                Abandon,
                                EndWait,
                                Drain>;

// Any one of the commands. It is copied, moved and destroyed out of line: for so many alternatives
// that is much code, and nearly every file of the daemon and its tests would contain it.
struct Command : AnyCommand {
  using AnyCommand::AnyCommand;

  Command();
  Command(const Command& other);
  Command(Command&& other) noexcept;
  Command& operator=(const Command& other);
  Command& operator=(Command&& other) noexcept;
  ~Command();
};

// How the log names a command.
inline constexpr std::array<std::string_view, std::variant_size_v<AnyCommand>> kCommandNames = {
    "enqueue",     "cancel",    "cancel_ids", "reschedule",  "touch",     "configure",
    "lease",       "lease_job", "ack",        "ack_many",    "nack",      "give_back",
    "bury",        "extend",    "kick",       "kick_queue",  "pause",     "resume",
    "show",        "peek",      "list",       "list_queues", "get_stats", "accept_clock",
    "change_many", "forecast",  "abandon",    "end_wait",    "drain"};

inline std::string_view CommandName(const Command& command) {
  return kCommandNames[command.index()];
}

static_assert(kCommandNames.back() == "drain");

// ---- Replies ----

struct Enqueued {
  struct Item {
    JobView job;           // without its payload
    bool existed = false;  // the key was taken: `job` is the one that has it, as it is now
  };

  std::vector<Item> items;  // in the order of the specs
};

struct EnqueuedIds {
  struct Item {
    JobId id{};
    bool existed = false;
    // Set when the job existed and will not fire: dead or finished.
    std::optional<JobState> ended = std::nullopt;
    bool cancelled = false;  // how a finished one ended; false: it was acked
  };

  boost::container::small_vector<Item, 1> items;  // in the order of the specs
};

struct Kicked {
  uint64_t count = 0;
};

struct AckedMany {
  uint64_t acked = 0;
  std::vector<LeaseToken> lost;  // these leases were over
};

struct CancelledIds {
  struct Refused {
    JobId id{};
    Status status;  // as for a Cancel of this job alone
  };

  uint64_t cancelled = 0;
  std::vector<Refused> refused;
};

struct Leased {
  std::vector<JobView> jobs;  // with payload, lease_token, lease_expires and lateness
};

struct JobList {
  std::vector<JobView> jobs;
  std::string next_cursor;  // empty: this was the last page
};

struct QueueView {
  std::string name;
  uint64_t scheduled = 0;
  uint64_t ready = 0;
  uint64_t leased = 0;
  uint64_t dead = 0;
  uint64_t urgent = 0;   // of the ready ones: priority below limits::kPriorityDefault
  uint64_t damaged = 0;  // of the ready ones: their records cannot be read
  bool paused = false;
  std::optional<Millis> pause_length;  // of a timed pause
  std::optional<Millis> pause_left;
  uint32_t concurrency = 0;  // the cap on leased jobs; 0: none
  uint32_t max_jobs = 0;     // the quota; 0: none
  RateCap rate;
  // Since the start of the daemon.
  uint64_t enqueued = 0;
  uint64_t handed_out = 0;
  uint64_t acked = 0;
  uint64_t cancelled = 0;
  uint64_t pauses = 0;
};

// Answers ListQueues; also Pause and Resume, with the one queue as it is now.
struct QueueList {
  std::vector<QueueView> queues;
  std::string next_cursor = {};  // empty: there are no more
};

struct StatsView {
  uint64_t scheduled = 0;
  uint64_t ready = 0;
  uint64_t leased = 0;
  uint64_t dead = 0;
  uint64_t queues = 0;
  uint64_t waiting = 0;  // lease requests that wait for a job
  // Since the start of the daemon.
  uint64_t enqueued = 0;
  uint64_t existed = 0;
  uint64_t cancelled = 0;
  uint64_t rescheduled = 0;  // touched ones included
  uint64_t fired = 0;
  uint64_t handed_out = 0;
  uint64_t acked = 0;
  uint64_t nacked = 0;
  uint64_t buried = 0;
  uint64_t lease_expired = 0;
  uint64_t died = 0;
  uint64_t kicked = 0;
  uint64_t quota_refusals = 0;  // enqueues refused by the quota of a queue or a user
  uint64_t damaged = 0;
  uint64_t commits = 0;
  uint64_t epoch = 0;
  uint64_t commit_sequence = 0;
  std::optional<WallTime> next_due;
  WallTime now;         // as the daemon believes it
  uint64_t urgent = 0;  // of the ready ones: priority below limits::kPriorityDefault
  bool draining = false;
  std::string_view clock = "trusted";  // or what is wrong with it; the server fills this in
};

struct ChangedMany {
  uint64_t matched = 0;
  uint64_t changed = 0;     // fewer when some are leased, or in a dry run
  std::string next_cursor;  // empty: this was the last step
};

struct ForecastView {
  struct Step {
    WallTime from;
    WallTime to;
    uint64_t count = 0;
    bool approximate = false;  // too many to be counted in one turn: an estimate
  };

  std::vector<Step> steps;
};

struct Reply {
  RequestId request = 0;
  Status status;
  std::variant<std::monostate,
               Enqueued,
               EnqueuedIds,
               // Cancel, Reschedule, Touch, Ack, Nack, GiveBack, Bury, Extend, Kick, Show, Peek:
               // the job as it is now (Cancel and Ack: as finished).
               Indirect<JobView>,
               Kicked,
               AckedMany,
               CancelledIds,
               Leased,
               JobList,
               QueueList,
               Indirect<StatsView>,
               ChangedMany,
               ForecastView>
      body;
  // The commit that this answer depends on. Orders all answers of one run of the daemon, and across
  // all its runs.
  uint64_t sequence = 0;
};

// Thousands of replies wait for one commit, and should stay in the processor's cache meanwhile.
static_assert(sizeof(Reply) <= 96);

}  // namespace delayd::engine
