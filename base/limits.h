// base/limits.h — every limit of this project, with the relations that must hold between them.
//
// Units:   in the names. A bound that an operator may change has its default here and its key in
// config/delayd.yaml.
#pragma once

#include <cstddef>
#include <cstdint>

namespace delayd::limits {

// Chooses a limit for one turn, page or step. The simulation is also built with the narrow values,
// so that each of its short runs reaches all of them (tests/simulation/CMakeLists.txt).
#if defined(DELAYD_NARROW_BOUNDS)
inline constexpr bool kAreNarrow = true;
#else
inline constexpr bool kAreNarrow = false;
#endif

constexpr size_t Bound(size_t usual, size_t narrow) {
  return kAreNarrow ? narrow : usual;
}

// Job ids stay exact in a JavaScript number.
inline constexpr uint64_t kJobIdMax = (uint64_t{1} << 53) - 1;
// Ids reserved per write of the high-water mark: a start skips at most this many.
inline constexpr uint64_t kJobIdBlock = 10'000;
// The highest rate at which a daemon may use up ids, including those that its starts skip.
inline constexpr uint64_t kJobIdsASecond = 1'000'000;
// Ids left out for a time that nothing is known of: those of a year, so that a wrong clock does not
// use up all.
inline constexpr uint64_t kIdsLeftOutMax = uint64_t{365} * 24 * 3600 * kJobIdsASecond;

// Queue numbers are given out consecutively: a larger one cannot be ours.
inline constexpr uint32_t kQueueIdMax = 67'000'000;
inline constexpr size_t kQueueNameBytesMax = 200;
// At most this many queues may exist that have no job, and nothing kept of a finished one.
inline constexpr size_t kEmptyQueuesMax = 10'000;
// This many bytes must be written, not counting the log's overhead, before the number of a
// forgotten queue is reused: as much as the logs may hold (storage/rocks_job_store.h), so that no
// log still tells of the old queue under that number.
inline constexpr uint64_t kQueueIdRestBytes = Bound(size_t{64} << 20, 20'000);
inline constexpr size_t kKeyBytesMax = 200;
inline constexpr size_t kLastErrorBytesMax = 1024;
// How many of a job's latest events its record keeps, and how much of each error.
inline constexpr size_t kJobEventsMax = 10;
inline constexpr size_t kEventErrorBytesMax = 200;
// Counts that a job brings from another store; they go on growing here, and must not wrap at 2^32.
inline constexpr uint32_t kPastFigureMax = 1'000'000'000;
inline constexpr size_t kPayloadBytesDefaultMax = size_t{1} << 20;
inline constexpr size_t kPayloadBytesHardMax = size_t{64} << 20;
// Longer payloads are stored in the big table instead of the timers table.
inline constexpr size_t kInlinePayloadBytesMax = 1024;

inline constexpr size_t kEnqueueBatchJobsMax = 1000;
inline constexpr size_t kRequestBodyBytesMax = size_t{32} << 20;
inline constexpr size_t kRequestHeaderBytesMax = 16 * 1024;
inline constexpr size_t kRequestLineBytesMax = 8 * 1024;

// A group commit takes everything that is queued, up to these limits.
inline constexpr size_t kCommitOpsJobsMax = 1024;
inline constexpr size_t kCommitBytesMax = size_t{1} << 20;

inline constexpr size_t kLeaseCountMax = 1000;
inline constexpr size_t kCancelIdsMax = 1000;
// Jobs kicked by one command, so that a turn stays short.
inline constexpr size_t kKickCountMax = Bound(1000, 3);
inline constexpr size_t kClientNameBytesMax = 200;
inline constexpr size_t kListLimitDefault = Bound(100, 5);
inline constexpr size_t kListLimitMax = Bound(1000, 7);
// A filtered list answers with a cursor after looking at this many rows, however few matched: other
// clients wait while a page is read, as they do for a step of kBulkRowsMax.
inline constexpr size_t kListScanRowsMax = Bound(1000, 7);
// If it shows payloads, it also stops after this many bytes of them, for the same reason.
inline constexpr size_t kListBytesMax = Bound(size_t{1} << 20, 500);
// Leased jobs are listed from memory, unless there have been so many leases at a time that looking
// through their slots would take more than a few milliseconds; then from the rows, as other jobs
// are.
inline constexpr size_t kListLeasesMax = 65'536;
// A lease of several jobs gets no further job after this many bytes of payloads: reading and
// sending them takes 10 ms, while everybody waits.
inline constexpr size_t kLeaseBytesMax = Bound(size_t{2} << 20, 2000);

// One step of a change of many jobs: the jobs that match, and the rows looked at on the way. Other
// clients wait while a step runs, so it must take no more than a few milliseconds.
inline constexpr size_t kBulkJobsDefault = Bound(100, 5);
inline constexpr size_t kBulkJobsMax = Bound(1000, 7);
inline constexpr size_t kBulkRowsMax = Bound(1000, 9);

inline constexpr size_t kForecastStepsMax = 1000;
// What one forecast looks at: entries in memory, and rows of the store, the soonest ones and again
// as many.
inline constexpr size_t kForecastSlotsMax = Bound(size_t{1} << 18, 4);
inline constexpr size_t kForecastRowsMax = Bound(16384, 6);

// Timers popped in one turn, and as many leases, so that a burst does not stall the sockets.
inline constexpr size_t kFireBatchMax = 4096;
// Leases are popped in steps of this size: their ends are written, and a full batch is closed in
// between.
inline constexpr size_t kFireStepMax = Bound(50, 3);
// After this time no further step begins, and no further job of a disconnected client is returned:
// each of them reads a record.
inline constexpr int64_t kOwnWorkMs = 10;
// Waits that end together are ended kFireWaitsMax at a time, until they have named kLeftNamesMax
// queues in a turn.
inline constexpr size_t kFireWaitsMax = Bound(64, 2);
inline constexpr size_t kLeftNamesMax = 50'000;
// What a job in memory takes: its entry and its places in the index and the wheel.
inline constexpr size_t kMemoryBytesPerJob = 64;
inline constexpr size_t kMemoryJobsDefaultMax = (size_t{512} << 20) / kMemoryBytesPerJob;
// Rows read from the store per page while timers are loaded.
inline constexpr size_t kLoadPageRows = Bound(2'000, 2);
// The same for queues that are loaded one by one, where each row costs two reads; and what a look
// at one of them costs at least, even if it finds fewer rows.
inline constexpr size_t kLoadQueuePageRows = Bound(500, 3);
inline constexpr size_t kLoadQueueLookRows = Bound(16, 2);
// The same when no queue asks for more and there is plenty of room: there may be millions of such
// rows, loaded a page per turn, and whoever changes something waits for two or three turns.
inline constexpr size_t kFillPageRows = Bound(100, 3);
// When memory has no room, jobs waiting for a wall clock that was set back may stay on disk if they
// are due later than this.
inline constexpr int64_t kLeftOnDiskMs = 100;
// Up to this many pages of jobs that are already due are loaded in the order of all queues. If
// there are more, the queues are loaded one by one, so that none waits for the backlog of another.
inline constexpr size_t kLoadPagesBehindMax = Bound(50, 2);
// Finished jobs whose retention has passed, forgotten per step.
inline constexpr size_t kTrimRowsMax = Bound(250, 2);
// The pause between such steps is at least kTrimIntervalMsMin, but only kTrimPauseMs while there
// are more rows than one step takes, and kTrimPauseBehindMs once rows are kTrimBehindMs overdue:
// then more jobs finish than the steps forget.
inline constexpr int64_t kTrimPauseMs = 10;
inline constexpr int64_t kTrimIntervalMsMin = 1000;
inline constexpr int64_t kTrimPauseBehindMs = 3;
inline constexpr int64_t kTrimBehindMs = 10'000;
// Ready jobs that one turn looks at without handing them out: expired, damaged, due later.
inline constexpr size_t kPassOverMax = Bound(1000, 3);
// What waiting clients get in one turn: bytes of payloads, plus this much for each job, and for
// each queue that a request names. When a queue is resumed, hundreds of them may want a thousand
// jobs each; and a thousand may wait for ten thousand queues each.
inline constexpr size_t kServeBytesMax = Bound(size_t{8} << 20, 8000);
inline constexpr size_t kServeBytesOfJob = size_t{2} << 10;
inline constexpr size_t kServeBytesOfName = 160;
// How long a lease request whose wait is over may still go on to the jobs behind those passed over.
inline constexpr int64_t kPassOverWaitMs = 1000;
// Ended leases, returned jobs and expired jobs whose rows are not durable yet.
inline constexpr size_t kOwnWorkMax = 4000;

inline constexpr int64_t kDelayMsMax = int64_t{100} * 365 * 24 * 3600 * 1000;  // 100 years
// Due times end before 2286-11-20 so that a millisecond count has at most 13 digits.
inline constexpr int64_t kWallMsMax = 9'999'999'999'999;
inline constexpr int64_t kLeaseMsDefault = 60'000;
inline constexpr int64_t kLeaseMsMax = int64_t{7} * 24 * 3600 * 1000;
inline constexpr int64_t kLeaseWaitMsMax = 3600 * 1000;
inline constexpr uint32_t kPriorityDefault = 1024;
inline constexpr uint32_t kMaxAttemptsDefault = 25;
inline constexpr int64_t kKeyRetentionMsDefault = int64_t{24} * 3600 * 1000;

static_assert(kInlinePayloadBytesMax < kPayloadBytesDefaultMax);
static_assert(kPayloadBytesDefaultMax < kRequestBodyBytesMax);
static_assert(kPayloadBytesDefaultMax <= kPayloadBytesHardMax);
static_assert(kListLimitMax <= kListScanRowsMax && kListScanRowsMax <= kBulkRowsMax);
// A step is one commit.
static_assert(kBulkJobsMax <= kCommitOpsJobsMax);
static_assert(kBulkJobsDefault <= kBulkJobsMax && kBulkJobsDefault <= kBulkRowsMax);

}  // namespace delayd::limits
