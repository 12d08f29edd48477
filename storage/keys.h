// storage/keys.h — the keys of every table. ON DISK: change nothing here without a new schema
// version.
//
// Units:   due times as unsigned milliseconds since the Unix epoch (a time before 1970 is written
// as
//          1970); all integers big-endian, so that order by key is order by time.
// Errors:  Parse functions answer kDataLoss when the key has the wrong length.
// Threads: pure functions.
// Cost:    the functions that return a string allocate (16 bytes are one too many for the small
//          string); on a hot path use the Append functions with a string that is used again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"

namespace delayd::storage {

// The key of a timer holds max(due, low-water mark), so that nothing is ever born below the mark.
std::string TimerKey(WallTime key_due, JobId id);

struct TimerKeyParts {
  WallTime key_due;
  JobId id{};
};

StatusOr<TimerKeyParts> ParseTimerKey(std::string_view key);

std::string IndexKey(JobId id);  // also of kBig
StatusOr<JobId> ParseIndexKey(std::string_view key);

std::string ByQueueKey(QueueId queue, WallTime key_due, JobId id);

struct ByQueueKeyParts {
  QueueId queue{};
  WallTime key_due;
  JobId id{};
};

StatusOr<ByQueueKeyParts> ParseByQueueKey(std::string_view key);

std::string ClientKey(QueueId queue, std::string_view key);

struct ClientKeyParts {
  QueueId queue{};
  std::string_view key;  // a part of what was parsed
};

StatusOr<ClientKeyParts> ParseClientKey(std::string_view key);

std::string DeadKey(QueueId queue, WallTime died, JobId id);

struct DeadKeyParts {
  QueueId queue{};
  WallTime died;
  JobId id{};
};

StatusOr<DeadKeyParts> ParseDeadKey(std::string_view key);

std::string DoneKey(WallTime finished, JobId id);
StatusOr<TimerKeyParts> ParseDoneKey(std::string_view key);  // key_due holds the finish time

void AppendTimerKey(std::string* out, WallTime key_due, JobId id);
void AppendIndexKey(std::string* out, JobId id);
void AppendByQueueKey(std::string* out, QueueId queue, WallTime key_due, JobId id);
void AppendClientKey(std::string* out, QueueId queue, std::string_view key);

// kMeta.
inline constexpr std::string_view kSchemaKey = "schema";
inline constexpr std::string_view kLowWaterMarkKey = "lwm";
inline constexpr std::string_view kDoneLowWaterMarkKey = "done_lwm";
inline constexpr std::string_view kBatchNumberKey = "batch_no";
inline constexpr std::string_view kIdHighWaterMarkKey = "id_hwm";
inline constexpr std::string_view kEpochKey = "epoch";
inline constexpr std::string_view kClockKey = "clock";
// Two's complement milliseconds: the most that the wall clock was ahead of the boot clock of
// "clock" when a relative job got its key.
inline constexpr std::string_view kWallOffsetMaxKey = "wall_offset_max";
inline constexpr std::string_view kQueueCountsPrefix = "count/";  // then the queue id as u32
std::string QueueCountsKey(QueueId queue);
StatusOr<QueueId> ParseQueueCountsKey(std::string_view key);
// How many jobs a user has stored; no row: none.
inline constexpr std::string_view kUserJobsPrefix = "user/";  // then the user's name
inline constexpr std::string_view kUserJobsEnd = "user0";     // behind the last one
std::string UserJobsKey(std::string_view user);

constexpr std::string_view UserOfKey(std::string_view key) {
  return key.substr(kUserJobsPrefix.size());
}

}  // namespace delayd::storage
