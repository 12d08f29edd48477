// storage/record.h — the values of every table. ON DISK: append fields under a new record version
// only.
//
// Units:   milliseconds.
// Errors:  Decode functions answer kDataLoss and name the object and the byte ("job 42: record
//          truncated at byte 17 of 31", "job 42: record checksum is 0x1 and should be 0x2"). A
//          record that decodes is exactly what was encoded: every value ends in a crc32c over its
//          table, key and bytes, so that a value under the wrong key is found too.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"
#include "storage/batch.h"

namespace delayd::storage {

inline constexpr uint32_t kSchemaVersion = 1;

using delayd::JobEvent;

// The durable part of a job: the value in kTimers, and in kDead once the job has died. The key in
// kDead says when it died, and last_error what of.
struct JobRecord {
  JobId id{};
  QueueId queue{};
  DueKind due_kind = DueKind::kRelative;
  WallTime due;          // the true due time; the key holds max(due, low-water mark)
  uint64_t boot_id = 0;  // relative jobs: the boot on whose clock boot_due counts
  BootTime boot_due;     // relative jobs; in whole milliseconds, rounded up
  Micros rounded_up{0};  // by how much rounding made it later than promised; in memory only
  WallTime created;
  uint32_t priority = 0;
  uint32_t attempts = 0;  // hand-outs that ended without an ack
  uint32_t max_attempts = 0;
  Millis lease{0};
  Millis expires_after{0};   // 0: never
  uint64_t fingerprint = 0;  // of the request's content, if there is a key
  std::string key;
  std::string last_error;
  // From here to the payload: record version 2, written if any of these fields is set.
  std::optional<Millis> delay;  // as asked for at enqueue; negative: none was. See DelayOf.
  uint32_t timeouts = 0;        // leases that ran out
  uint32_t releases = 0;        // leases that were nacked
  uint32_t buries = 0;
  uint32_t kicks = 0;
  std::vector<JobEvent> events;  // the latest, oldest first
  // Record version 3, written if it is set: the user whose quota the job counts against.
  std::string user;
  // Record version 4, or 5 if there is a user: hand-outs that ended because the worker's connection
  // ended.
  uint32_t returns = 0;

  bool payload_is_big = false;  // it is stored in kBig
  uint64_t payload_bytes = 0;
  std::string payload;  // empty when it is big
};

// The delay asked for at enqueue: as long as the job has not been moved, it follows from the due
// time.
std::optional<Millis> DelayOf(const JobRecord& record);

// For kTimers and kDead. The id comes from the key; payload_bytes of an inline payload is its size.
std::string EncodeJobRecord(Table table, std::string_view key, const JobRecord& record);
void AppendJobRecord(std::string* out, Table table, std::string_view key, const JobRecord& record);
StatusOr<JobRecord> DecodeJobRecord(Table table, std::string_view key, std::string_view value);

// The part of a timer that a start needs: the head of the record, without its key and payload, and
// with the checksum not verified.
struct TimerHead {
  QueueId queue{};
  DueKind due_kind = DueKind::kRelative;
  WallTime due;
  uint64_t boot_id = 0;
  BootTime boot_due;
  uint32_t priority = 0;
  bool payload_is_big = false;
  bool plain = false;  // IsPlain of the whole record
};

StatusOr<TimerHead> DecodeTimerHead(std::string_view key, std::string_view value);

std::string EncodeBigPayload(std::string_view key, std::string_view payload);
StatusOr<std::string_view> DecodeBigPayload(std::string_view key, std::string_view value);

// A plain job has only the rows that every job has, and counts against nobody's quota: ending it
// takes only the place of its record, not the record itself.
inline bool IsPlain(const JobRecord& record) {
  return record.key.empty() && record.user.empty() && !record.payload_is_big;
}

// kIndex: where a job's record is, while it has one.
struct IndexRecord {
  // On disk: append only, never renumber.
  enum class Place : uint8_t { kTimers = 1, kDead = 2, kDone = 3 };
  Place place = Place::kTimers;
  QueueId queue{};
  WallTime at;  // kTimers: key_due; kDead: when it died; kDone: when it finished
  // IsPlain of its record. Record version 2; rows of version 1, and rows of kDone, do not say.
  bool plain = false;
  friend bool operator==(const IndexRecord&, const IndexRecord&) = default;
};

std::string EncodeIndexRecord(std::string_view key, const IndexRecord& record);
void AppendIndexRecord(std::string* out, std::string_view key, const IndexRecord& record);
StatusOr<IndexRecord> DecodeIndexRecord(std::string_view key, std::string_view value);

// kKeys: the job that holds a caller's key. A live job's entry has no expiry; a finished job's
// entry is kept until `expiry`.
struct KeyRecord {
  JobId id{};
  uint64_t fingerprint = 0;
  std::optional<WallTime> expiry = std::nullopt;
  // Kept for a finished job, so that a repeated enqueue can be answered without any history.
  std::optional<WallTime> finished = std::nullopt;
  bool cancelled = false;
};

std::string EncodeKeyRecord(std::string_view key, const KeyRecord& record);
StatusOr<KeyRecord> DecodeKeyRecord(std::string_view key, std::string_view value);

// kDone: what is kept of a finished job; it is also the list through which expired keys are found.
struct DoneRecord {
  QueueId queue{};
  std::string key;
  bool cancelled = false;
  uint32_t attempts = 0;
  WallTime due;
  WallTime created;
  // Record version 2. Such a job has a row in kIndex too; after this time it counts as forgotten.
  std::optional<WallTime> kept_until = std::nullopt;
  // The job as it was, if its queue keeps a history; the fields above are taken from it. A big
  // payload is deleted with the job.
  std::optional<JobRecord> story = std::nullopt;
};

std::string EncodeDoneRecord(std::string_view key, const DoneRecord& record);
StatusOr<DoneRecord> DecodeDoneRecord(std::string_view key, std::string_view value);

// kQueues, under the queue's name.
struct QueueRecord {
  // A timed pause counts on the boot clock of its boot; after a reboot it counts from `since` on
  // the wall clock.
  struct Timed {
    Millis length{0};
    uint64_t boot_id = 0;
    BootTime boot_end;
    friend bool operator==(const Timed&, const Timed&) = default;
  };

  struct Pause {
    WallTime since;
    std::optional<Timed> timed = std::nullopt;  // none: until it is resumed
    friend bool operator==(const Pause&, const Pause&) = default;
  };

  QueueId id{};
  std::optional<Pause> pause = std::nullopt;  // record version 2, written if it is set
};

std::string EncodeQueueRecord(std::string_view key, const QueueRecord& record);
StatusOr<QueueRecord> DecodeQueueRecord(std::string_view key, std::string_view value);

// kMeta "count/<queue id>": exact after every commit.
struct QueueCounts {
  uint64_t pending = 0;  // scheduled, ready and leased
  uint64_t dead = 0;
  // Finished jobs of which something is kept. None: the row was written by a program that did not
  // count them (version 1).
  std::optional<uint64_t> done = 0;

  bool IsEmpty() const { return pending == 0 && dead == 0 && done == 0; }
};

std::string EncodeQueueCounts(std::string_view key, const QueueCounts& counts);
StatusOr<QueueCounts> DecodeQueueCounts(std::string_view key, std::string_view value);

// kMeta single numbers: schema, lwm, done_lwm, batch_no, id_hwm, epoch, wall_offset_max,
// wall_offset_min; the jobs of a user.
std::string EncodeNumber(std::string_view key, uint64_t number);
StatusOr<uint64_t> DecodeNumber(std::string_view key, std::string_view value);

// kMeta "clock": the highest wall time seen, and the boot clock at that moment.
struct ClockRecord {
  WallTime wall;
  uint64_t boot_id = 0;
  BootTime boot;
};

std::string EncodeClockRecord(std::string_view key, const ClockRecord& record);
StatusOr<ClockRecord> DecodeClockRecord(std::string_view key, std::string_view value);

}  // namespace delayd::storage
