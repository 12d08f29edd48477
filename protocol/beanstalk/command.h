// protocol/beanstalk/command.h — one command of the beanstalk protocol, and how its line is read.
//
// What:    ParseCommandLine reads a line without its CR LF; the body of a put is not part of it.
//          ParseBatch and ParseIds read the bodies of our own put-batch and delete-batch.
//          docs/protocol.md is the grammar.
// Units:   delays and times to run in milliseconds, whatever unit the verb has on the wire.
// Errors:  a refusal in the command: the first thing found wrong with it.
// Threads: values; the views point into what was parsed.
// Cost:    no allocation.
// Source:  the observed behaviour of beanstalkd 1.10 to 1.13; docs/protocol.md says where versions
//          differ, and where we do.
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
  // Our extensions. Other servers answer UNKNOWN_COMMAND, so a client can tell them apart.
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
  kBadFormat,     // the body of our own verbs was skipped
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
  uint64_t count = 0;       // the bound of a kick, or the number of jobs in a batch
  uint64_t timeout = 0;     // of a reserve, in seconds
  bool has_body = false;    // a body follows the line, even if the line is refused
  uint64_t body_bytes = 0;  // without its CR LF
  std::string_view name;    // a tube or a key
  std::string_view body;
};

// Line lengths include CR LF.
inline constexpr size_t kLineBytesMax = 224;
// Only put-key may be longer: numbers precede its key of up to 200 bytes.
inline constexpr size_t kLongLineBytesMax = 288;
inline constexpr size_t kBatchJobsMax = 1000;
inline constexpr size_t kBatchBytesMax = size_t{8} << 20;
// The ids of a delete-batch: 20 digits and a space each.
inline constexpr size_t kIdsBytesMax = kBatchJobsMax * 21;

// A put of more than `job_bytes_max` is refused with kJobTooBig.
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

// The body of delete-batch: exactly `count` ids, separated by spaces.
Refusal ParseIds(std::string_view body, uint64_t count, std::vector<uint64_t>* ids);

}  // namespace delayd::beanstalk
