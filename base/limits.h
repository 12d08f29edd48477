// base/limits.h — every bound of the house, with the relations that must hold between them.
//
// Units:   in the names. A bound that an operator may change has its default here and its key in
// config/delayd.yaml.
#pragma once

#include <cstddef>
#include <cstdint>

namespace delayd::limits {

// A bound of one turn, page or step. The simulation is built a second time with the narrow ones, so
// that each of its short lives meets them all (tests/simulation/CMakeLists.txt).
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
// No daemon gives out more, its starts with what they skip among them.
inline constexpr uint64_t kJobIdsASecond = 1'000'000;

// Numbers of queues are given one after the other: a larger one is not ours.
inline constexpr uint32_t kQueueIdMax = 67'000'000;
inline constexpr size_t kQueueNameBytesMax = 200;
// So many queues may be there of which no job is left, nor anything of a finished one.
inline constexpr size_t kEmptyQueuesMax = 10'000;
// So much is written, without what the log adds to it, before the number of a forgotten queue is
// given again: as much as logs may have (storage/rocks_job_store.h), so that none tells of the
// queue that it named.
inline constexpr uint64_t kQueueIdRestBytes = Bound(size_t{64} << 20, 20'000);
inline constexpr size_t kKeyBytesMax = 200;
inline constexpr size_t kLastErrorBytesMax = 1024;
// The latest steps of a job's story that its record keeps, and how much of each error.
inline constexpr size_t kJobEventsMax = 10;
inline constexpr size_t kEventErrorBytesMax = 200;
// Counts that a job brings from another store; they grow here, and must not begin anew at 2^32.
inline constexpr uint32_t kPastFigureMax = 1'000'000'000;
inline constexpr size_t kPayloadBytesDefaultMax = size_t{1} << 20;
inline constexpr size_t kPayloadBytesHardMax = size_t{64} << 20;
// Longer payloads leave the timers table for the big table.
inline constexpr size_t kInlinePayloadBytesMax = 1024;

inline constexpr size_t kEnqueueBatchJobsMax = 1000;
inline constexpr size_t kRequestBodyBytesMax = size_t{32} << 20;
inline constexpr size_t kRequestHeaderBytesMax = 16 * 1024;
inline constexpr size_t kRequestLineBytesMax = 8 * 1024;

// One group commit takes everything that is queued, up to these.
inline constexpr size_t kCommitOpsJobsMax = 1024;
inline constexpr size_t kCommitBytesMax = size_t{1} << 20;

inline constexpr size_t kLeaseCountMax = 1000;
inline constexpr size_t kCancelIdsMax = 1000;
// Jobs kicked by one command, so that a turn stays short.
inline constexpr size_t kKickCountMax = Bound(1000, 3);
inline constexpr size_t kClientNameBytesMax = 200;
inline constexpr size_t kListLimitDefault = Bound(100, 5);
inline constexpr size_t kListLimitMax = Bound(1000, 7);
// A filtered list answers with a cursor after looking at this many rows, however few matched:
// others wait for a page, as they do for a step of kBulkRowsMax.
inline constexpr size_t kListScanRowsMax = Bound(1000, 7);
// And, where it shows payloads, behind so many bytes of them, for the same reason.
inline constexpr size_t kListBytesMax = Bound(size_t{1} << 20, 500);
// Leased jobs are listed from memory; where so many leases were there at once, from the rows as
// other jobs are: to look through these takes a few milliseconds.
inline constexpr size_t kListLeasesMax = 65'536;
// No further job is added to a lease of many behind so many bytes of payloads: to read and to
// answer these takes 10 ms, while everybody waits.
inline constexpr size_t kLeaseBytesMax = Bound(size_t{2} << 20, 2000);

// One step of a change of many jobs: what matches, and what is looked at on the way. Other clients
// wait for a step, so it is a matter of a few milliseconds.
inline constexpr size_t kBulkJobsDefault = Bound(100, 5);
inline constexpr size_t kBulkJobsMax = Bound(1000, 7);
inline constexpr size_t kBulkRowsMax = Bound(1000, 9);

inline constexpr size_t kForecastStepsMax = 1000;
// Looked at for one forecast: entries in memory, and rows of the store, the soonest ones and again
// as many.
inline constexpr size_t kForecastSlotsMax = Bound(size_t{1} << 18, 4);
inline constexpr size_t kForecastRowsMax = Bound(16384, 6);

// Timers popped in one turn, and as many leases, so that a burst does not stall the sockets.
inline constexpr size_t kFireBatchMax = 4096;
// Of leases so many at once: their ends are written, and a batch that is full is closed in between.
inline constexpr size_t kFireStepMax = Bound(50, 3);
// Behind so much time no further step, nor a job of a client that has gone: each reads its record.
inline constexpr int64_t kOwnWorkMs = 10;
// Waits that end together: so many at a time, until they have named so many queues in a turn.
inline constexpr size_t kFireWaitsMax = Bound(64, 2);
inline constexpr size_t kLeftNamesMax = 50'000;
// What a job in memory takes: its entry, its place in the index and in the wheel.
inline constexpr size_t kMemoryBytesPerJob = 64;
inline constexpr size_t kMemoryJobsDefaultMax = (size_t{512} << 20) / kMemoryBytesPerJob;
// Rows read from the store in one page while timers are loaded.
inline constexpr size_t kLoadPageRows = Bound(2'000, 2);
// The same for queues that are loaded one by one, where each row is two reads; and what a look at
// one of them counts for when it finds less.
inline constexpr size_t kLoadQueuePageRows = Bound(500, 3);
inline constexpr size_t kLoadQueueLookRows = Bound(16, 2);
// And where no queue asks for more and there is plenty of room: there may be millions, a page a
// turn, and whoever changes something waits for two or three turns.
inline constexpr size_t kFillPageRows = Bound(100, 3);
// Of jobs that wait for a clock that was set back, those that are due later than in this time may
// stay on disk where memory has no room.
inline constexpr int64_t kLeftOnDiskMs = 100;
// So many pages of jobs that are due already are loaded in the order of all queues; when there are
// more, the queues are loaded one by one, so that none waits for the backlog of another.
inline constexpr size_t kLoadPagesBehindMax = Bound(50, 2);
// Finished jobs whose retention has passed, forgotten in one step.
inline constexpr size_t kTrimRowsMax = Bound(250, 2);
// Between such steps; the longer one unless there are more rows than one step takes. The shortest
// where rows are left so long behind their time: more jobs finish than the steps before it forget.
inline constexpr int64_t kTrimPauseMs = 10;
inline constexpr int64_t kTrimIntervalMsMin = 1000;
inline constexpr int64_t kTrimPauseBehindMs = 3;
inline constexpr int64_t kTrimBehindMs = 10'000;
// Ready jobs that are looked at in one turn and not handed out: expired, damaged, due later.
inline constexpr size_t kPassOverMax = Bound(1000, 3);
// What those who wait for jobs get in one turn: payloads, and so much for each job beside it. Where
// a queue is resumed, hundreds of them may want a thousand jobs each.
inline constexpr size_t kServeBytesMax = Bound(size_t{8} << 20, 8000);
inline constexpr size_t kServeBytesOfJob = size_t{2} << 10;
// How long a lease request whose wait is over may go on to the jobs behind them.
inline constexpr int64_t kPassOverWaitMs = 1000;
// Leases that ended, jobs that came back and jobs that expired whose rows are not durable yet.
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
