// protocol/beanstalk/command.h — one command of the beanstalk protocol, and how its line is read.
//
// What:    ParseCommandLine reads a line without its CR LF; the body of a put is not part of it.
//          ParseBatch and ParseIds read the bodies of our own put-batch and delete-batch.
//          docs/protocol.md is the grammar.
// Units:   delays and times to run in milliseconds, whatever unit the verb has on the wire.
// Errors:  a refusal in the command: what is wrong with it, in the order in which it is checked.
// Threads: values; the views point into what was parsed.
// Cost:    no allocation.
// Source:  the behaviour of beanstalkd 1.10 to 1.13, observed; where it differs by version, and
//          where we differ, docs/protocol.md says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace delayd::beanstalk {

enum class Verb : uint8_t {
  kPut,
  kUse,
  kReserve,
  kReserveWithTimeout,
  kReserveJob,
  kDelete,
  kRelease,
  kBury,
  kTouch,
  kWatch,
  kIgnore,
  kPeek,
  kPeekReady,
  kPeekDelayed,
  kPeekBuried,
  kKick,
  kKickJob,
  kPauseTube,
  kStats,
  kStatsTube,
  kStatsJob,
  kListTubes,
  kListTubeUsed,
  kListTubesWatched,
  kQuit,
  // Ours: other servers answer UNKNOWN_COMMAND, by which a client can tell.
  kPutMs,
  kPutKey,
  kPutBatch,
  kDeleteKey,
  kReserveBatch,
  kDeleteBatch,
  kNone,  // the line names no verb
};
inline constexpr size_t kVerbCount = static_cast<size_t>(Verb::kNone);

inline bool IsOurs(Verb verb) {
  return verb >= Verb::kPutMs && verb < Verb::kNone;
}

enum class Refusal : uint8_t {
  kNone,
  kUnknownCommand,
  kBadFormat,     // of our own verbs the body was skipped
  kJobTooBig,     // the body was skipped
  kExpectedCrlf,  // the body was skipped
};

struct Command {
  Verb verb = Verb::kNone;
  Refusal refusal = Refusal::kNone;
  uint64_t id = 0;
  uint32_t priority = 0;
  Millis delay{0};
  Millis ttr{0};
  uint64_t count = 0;       // the bound of kick, the jobs of a batch
  uint64_t timeout = 0;     // of a reserve, in seconds
  bool has_body = false;    // behind the line, which may be refused all the same
  uint64_t body_bytes = 0;  // without its CR LF
  std::string_view name;    // a tube or a key
  std::string_view body;
};

// Line lengths with CR LF.
inline constexpr size_t kLineBytesMax = 224;
// Only put-key may be longer: a key has up to 200 bytes, and numbers stand before it.
inline constexpr size_t kLongLineBytesMax = 288;
inline constexpr size_t kBatchJobsMax = 1000;
inline constexpr size_t kBatchBytesMax = size_t{8} << 20;
// Of ids: 20 digits and a space each.
inline constexpr size_t kIdsBytesMax = kBatchJobsMax * 21;

// `job_bytes_max`: a put above it is refused with kJobTooBig.
Command ParseCommandLine(std::string_view line, size_t job_bytes_max);

struct BatchJob {
  uint32_t priority = 0;
  Millis delay{0};
  Millis ttr{0};
  std::string_view key;  // empty: none
  std::string_view body;
};

// The body of put-batch: exactly `count` jobs, each "<pri> <delay-ms> <ttr-ms> <bytes> [key]" CR LF
// body CR LF.
Refusal ParseBatch(std::string_view body,
                   uint64_t count,
                   size_t job_bytes_max,
                   std::vector<BatchJob>* jobs);

// The body of delete-batch: exactly `count` ids with spaces between them.
Refusal ParseIds(std::string_view body, uint64_t count, std::vector<uint64_t>* ids);

}  // namespace delayd::beanstalk
