// The records beside the job's own: kIndex, kKeys, kDone, kQueues and kMeta.
#include <utility>

#include "base/check.h"
#include "storage/job_fields.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/seal.h"

namespace delayd::storage {
namespace {

// Flags of a key record.
constexpr uint8_t kHasExpiry = 0x01;
constexpr uint8_t kHasFinished = 0x02;
constexpr uint8_t kKeyCancelled = 0x04;
constexpr uint8_t kKeyKnownFlags = 0x07;

// Flags of a done record.
constexpr uint8_t kDoneCancelled = 0x01;
constexpr uint8_t kDoneHasStory = 0x02;  // version 2

// How a queue record of version 2 is paused.
constexpr uint8_t kPaused = 1;
constexpr uint8_t kPausedFor = 2;

uint8_t ReadFlags(SealReader* in, uint8_t known) {
  const uint8_t flags = in->U8();
  if ((flags & ~known) != 0) {
    in->Reject();
  }
  return flags;
}

void ReadStory(SealReader* in, JobId id, DoneRecord* record) {
  const uint8_t version = in->U8();
  if (version < kRecordVersion || version > kRecordVersion5) {
    in->Reject();
    return;
  }
  JobRecord story = ReadJobFields(in, version);
  story.id = id;
  record->queue = story.queue;
  record->attempts = story.attempts;
  record->due = story.due;
  record->created = story.created;
  record->key = story.key;
  record->story = std::move(story);
}

}  // namespace

void AppendIndexRecord(std::string* out, std::string_view key, const IndexRecord& record) {
  DELAYD_CHECK(!record.plain || record.place != IndexRecord::Place::kDone);
  const size_t begin = out->size();
  AppendU8(out, record.plain ? kRecordVersion2 : kRecordVersion);
  AppendU8(out, static_cast<uint8_t>(record.place));
  AppendVarint(out, ToInt(record.queue));
  AppendSigned(out, ToMillis(record.at));
  Seal(Table::kIndex, key, begin, out);
}

std::string EncodeIndexRecord(std::string_view key, const IndexRecord& record) {
  std::string out;
  AppendIndexRecord(&out, key, record);
  return out;
}

StatusOr<IndexRecord> DecodeIndexRecord(std::string_view key, std::string_view value) {
  DELAYD_ASSIGN_OR_RETURN(const JobId id, ParseIndexKey(key));
  SealReader in(Table::kIndex, key, value, kRecordVersion2);
  IndexRecord record;
  record.plain = in.version() == kRecordVersion2;
  const uint8_t place = in.U8();
  if (place < static_cast<uint8_t>(IndexRecord::Place::kTimers) ||
      place > static_cast<uint8_t>(record.plain ? IndexRecord::Place::kDead
                                                : IndexRecord::Place::kDone)) {
    in.Reject();
  }
  record.place = static_cast<IndexRecord::Place>(place);
  record.queue = QueueId{in.Varint32()};
  record.at = WallFromMillis(in.Signed());
  DELAYD_RETURN_IF_ERROR(in.Finish([&] { return "index of job " + std::to_string(ToInt(id)); }));
  return record;
}

std::string EncodeKeyRecord(std::string_view key, const KeyRecord& record) {
  std::string out;
  AppendU8(&out, kRecordVersion);
  AppendU8(&out,
           static_cast<uint8_t>((record.expiry.has_value() ? kHasExpiry : 0) |
                                (record.finished.has_value() ? kHasFinished : 0) |
                                (record.cancelled ? kKeyCancelled : 0)));
  AppendVarint(&out, ToInt(record.id));
  AppendU64(&out, record.fingerprint);
  if (record.expiry.has_value()) {
    AppendSigned(&out, ToMillis(*record.expiry));
  }
  if (record.finished.has_value()) {
    AppendSigned(&out, ToMillis(*record.finished));
  }
  Seal(Table::kKeys, key, 0, &out);
  return out;
}

StatusOr<KeyRecord> DecodeKeyRecord(std::string_view key, std::string_view value) {
  DELAYD_ASSIGN_OR_RETURN(const ClientKeyParts parts, ParseClientKey(key));
  SealReader in(Table::kKeys, key, value);
  KeyRecord record;
  const uint8_t flags = ReadFlags(&in, kKeyKnownFlags);
  // A finished job's key has both, a live job's neither: code that reads one relies on the other.
  if (((flags & kHasExpiry) != 0) != ((flags & kHasFinished) != 0)) {
    in.Reject();
  }
  record.cancelled = (flags & kKeyCancelled) != 0;
  record.id = JobId{in.Varint()};
  record.fingerprint = in.U64();
  if ((flags & kHasExpiry) != 0) {
    record.expiry = WallFromMillis(in.Signed());
  }
  if ((flags & kHasFinished) != 0) {
    record.finished = WallFromMillis(in.Signed());
  }
  DELAYD_RETURN_IF_ERROR(in.Finish([&] {
    return "key " + std::string(parts.key) + " in queue number " +
           std::to_string(ToInt(parts.queue));
  }));
  return record;
}

std::string EncodeDoneRecord(std::string_view key, const DoneRecord& record) {
  std::string out;
  AppendU8(&out, record.kept_until ? kRecordVersion2 : kRecordVersion);
  AppendU8(&out,
           static_cast<uint8_t>((record.cancelled ? kDoneCancelled : 0) |
                                (record.story ? kDoneHasStory : 0)));
  if (record.kept_until) {
    AppendSigned(&out, ToMillis(*record.kept_until));
  }
  if (record.story) {
    DELAYD_CHECK(record.kept_until.has_value());
    AppendJobFields(&out, *record.story);
  } else {
    AppendVarint(&out, ToInt(record.queue));
    AppendVarint(&out, record.attempts);
    AppendSigned(&out, ToMillis(record.due));
    AppendSigned(&out, ToMillis(record.created));
    out.append(record.key);
  }
  Seal(Table::kDone, key, 0, &out);
  return out;
}

StatusOr<DoneRecord> DecodeDoneRecord(std::string_view key, std::string_view value) {
  DELAYD_ASSIGN_OR_RETURN(const TimerKeyParts parts, ParseDoneKey(key));
  SealReader in(Table::kDone, key, value, kRecordVersion2);
  const bool newer = in.version() == kRecordVersion2;
  DoneRecord record;
  const uint8_t flags =
      ReadFlags(&in, newer ? uint8_t{kDoneCancelled | kDoneHasStory} : kDoneCancelled);
  record.cancelled = (flags & kDoneCancelled) != 0;
  if (newer) {
    record.kept_until = WallFromMillis(in.Signed());
  }
  if ((flags & kDoneHasStory) != 0) {
    ReadStory(&in, parts.id, &record);
  } else {
    record.queue = QueueId{in.Varint32()};
    record.attempts = in.Varint32();
    record.due = WallFromMillis(in.Signed());
    record.created = WallFromMillis(in.Signed());
    record.key = in.Rest();
  }
  DELAYD_RETURN_IF_ERROR(
      in.Finish([&] { return "finished job " + std::to_string(ToInt(parts.id)); }));
  return record;
}

std::string EncodeQueueRecord(std::string_view key, const QueueRecord& record) {
  std::string out;
  AppendU8(&out, record.pause ? kRecordVersion2 : kRecordVersion);
  AppendVarint(&out, ToInt(record.id));
  if (record.pause) {
    AppendU8(&out, record.pause->timed ? kPausedFor : kPaused);
    AppendSigned(&out, ToMillis(record.pause->since));
    if (const auto& timed = record.pause->timed) {
      AppendSigned(&out, timed->length.count());
      AppendU64(&out, timed->boot_id);
      AppendSigned(&out, ToMillis(timed->boot_end));
    }
  }
  Seal(Table::kQueues, key, 0, &out);
  return out;
}

StatusOr<QueueRecord> DecodeQueueRecord(std::string_view key, std::string_view value) {
  SealReader in(Table::kQueues, key, value, kRecordVersion2);
  QueueRecord record;
  record.id = QueueId{in.Varint32()};
  if (in.version() == kRecordVersion2) {
    const uint8_t kind = in.U8();
    if (kind != kPaused && kind != kPausedFor) {
      in.Reject();
    }
    record.pause = QueueRecord::Pause{};
    record.pause->since = WallFromMillis(in.Signed());
    if (kind == kPausedFor) {
      record.pause->timed = QueueRecord::Timed{};
      QueueRecord::Timed& timed = *record.pause->timed;
      timed.length = Millis(in.Signed());
      timed.boot_id = in.U64();
      timed.boot_end = BootFromMillis(in.Signed());
    }
  }
  DELAYD_RETURN_IF_ERROR(in.Finish([&] { return "queue " + std::string(key); }));
  return record;
}

std::string EncodeQueueCounts(std::string_view key, const QueueCounts& counts) {
  std::string out;
  AppendU8(&out, counts.done ? kRecordVersion2 : kRecordVersion);
  AppendVarint(&out, counts.pending);
  AppendVarint(&out, counts.dead);
  if (counts.done) {
    AppendVarint(&out, *counts.done);
  }
  Seal(Table::kMeta, key, 0, &out);
  return out;
}

StatusOr<QueueCounts> DecodeQueueCounts(std::string_view key, std::string_view value) {
  DELAYD_ASSIGN_OR_RETURN(const QueueId queue, ParseQueueCountsKey(key));
  SealReader in(Table::kMeta, key, value, kRecordVersion2);
  QueueCounts counts;
  counts.pending = in.Varint();
  counts.dead = in.Varint();
  counts.done.reset();
  if (in.version() == kRecordVersion2) {
    counts.done = in.Varint();
  }
  DELAYD_RETURN_IF_ERROR(
      in.Finish([&] { return "counts of queue number " + std::to_string(ToInt(queue)); }));
  return counts;
}

std::string EncodeNumber(std::string_view key, uint64_t number) {
  std::string out;
  AppendU8(&out, kRecordVersion);
  AppendU64(&out, number);
  Seal(Table::kMeta, key, 0, &out);
  return out;
}

StatusOr<uint64_t> DecodeNumber(std::string_view key, std::string_view value) {
  SealReader in(Table::kMeta, key, value);
  const uint64_t number = in.U64();
  DELAYD_RETURN_IF_ERROR(in.Finish([&] { return "meta " + std::string(key); }));
  return number;
}

std::string EncodeClockRecord(std::string_view key, const ClockRecord& record) {
  std::string out;
  AppendU8(&out, kRecordVersion);
  AppendSigned(&out, ToMillis(record.wall));
  AppendU64(&out, record.boot_id);
  AppendSigned(&out, ToMillis(record.boot));
  Seal(Table::kMeta, key, 0, &out);
  return out;
}

StatusOr<ClockRecord> DecodeClockRecord(std::string_view key, std::string_view value) {
  SealReader in(Table::kMeta, key, value);
  ClockRecord record;
  record.wall = WallFromMillis(in.Signed());
  record.boot_id = in.U64();
  record.boot = BootFromMillis(in.Signed());
  DELAYD_RETURN_IF_ERROR(in.Finish([&] { return "meta " + std::string(key); }));
  return record;
}

}  // namespace delayd::storage
