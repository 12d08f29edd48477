// storage/keys.h — the keys of every table. ON DISK: change nothing here without a new schema
// version.
//
// Units:   due times as unsigned milliseconds since the Unix epoch (a time before 1970 is written
//          as 1970); all integers big-endian, so that key order is time order.
// Errors:  Parse functions answer kDataLoss when the key has the wrong length.
// Threads: pure functions.
// Cost:    keys made of numbers are values, without an allocation; a key that contains a client's
//          text is a string.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"

namespace delayd::storage {

// A key made of numbers. Converts to whatever takes a key; a view of it is valid as long as it
// lives.
class FixedKey {
 public:
  FixedKey& Add(uint32_t number) { return AddBytes(__builtin_bswap32(number)); }

  FixedKey& Add(uint64_t number) { return AddBytes(__builtin_bswap64(number)); }

  // Keys are unsigned. A clock set before 1970 must not send its jobs to the end of time.
  FixedKey& Add(WallTime time) {
    return Add(static_cast<uint64_t>(std::max<int64_t>(ToMillis(time), 0)));
  }

  std::string_view view() const { return {bytes_.data(), size_}; }

  operator std::string_view() const { return view(); }

  operator std::string() const { return std::string(view()); }

  friend bool operator==(const FixedKey& a, std::string_view b) { return a.view() == b; }

  friend auto operator<=>(const FixedKey& a, std::string_view b) { return a.view() <=> b; }

 private:
  template <typename Number>
  FixedKey& AddBytes(Number big_endian) {
    std::memcpy(bytes_.data() + size_, &big_endian, sizeof big_endian);
    size_ += sizeof big_endian;
    return *this;
  }

  std::array<char, 20> bytes_{};
  uint32_t size_ = 0;
};

// A timer's key holds max(due, low-water mark), so that no row is ever created below the mark.
inline FixedKey TimerKey(WallTime key_due, JobId id) {
  return FixedKey().Add(key_due).Add(ToInt(id));
}

struct TimerKeyParts {
  WallTime key_due;
  JobId id{};
};

StatusOr<TimerKeyParts> ParseTimerKey(std::string_view key);

// Also of kBig.
inline FixedKey IndexKey(JobId id) {
  return FixedKey().Add(ToInt(id));
}

StatusOr<JobId> ParseIndexKey(std::string_view key);

inline FixedKey ByQueueKey(QueueId queue, WallTime key_due, JobId id) {
  return FixedKey().Add(ToInt(queue)).Add(key_due).Add(ToInt(id));
}

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

inline FixedKey DeadKey(QueueId queue, WallTime died, JobId id) {
  return ByQueueKey(queue, died, id);
}

struct DeadKeyParts {
  QueueId queue{};
  WallTime died;
  JobId id{};
};

StatusOr<DeadKeyParts> ParseDeadKey(std::string_view key);

inline FixedKey DoneKey(WallTime finished, JobId id) {
  return TimerKey(finished, id);
}

StatusOr<TimerKeyParts> ParseDoneKey(std::string_view key);  // key_due holds the finish time

// kMeta.
inline constexpr std::string_view kSchemaKey = "schema";
inline constexpr std::string_view kLowWaterMarkKey = "lwm";
inline constexpr std::string_view kDoneLowWaterMarkKey = "done_lwm";
inline constexpr std::string_view kBatchNumberKey = "batch_no";
inline constexpr std::string_view kIdHighWaterMarkKey = "id_hwm";
inline constexpr std::string_view kEpochKey = "epoch";
inline constexpr std::string_view kClockKey = "clock";
// Two's complement milliseconds: the largest and the smallest lead of the wall clock over the boot
// clock of "clock" at a moment when a relative job got its key.
inline constexpr std::string_view kWallOffsetMaxKey = "wall_offset_max";
inline constexpr std::string_view kWallOffsetMinKey = "wall_offset_min";
inline constexpr std::string_view kQueueCountsPrefix = "count/";  // then the queue id as u32
inline constexpr std::string_view kQueueCountsEnd = "count0";     // behind the last one
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
