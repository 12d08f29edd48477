// The record of a job, as docs/storage-format.md lays it out: kTimers, kDead and kBig.
#include "base/check.h"
#include "storage/job_events.h"
#include "storage/job_fields.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/seal.h"

namespace delayd::storage {
namespace {

// The flags byte: two bits of DueKind, then one bit each.
constexpr uint8_t kDueKindMask = 0x03;
constexpr uint8_t kHasKey = 0x04;
constexpr uint8_t kPayloadIsBig = 0x08;
constexpr uint8_t kHasError = 0x10;
constexpr uint8_t kKnownFlags = 0x1f;

uint8_t Flags(const JobRecord& record) {
  uint8_t flags = static_cast<uint8_t>(record.due_kind);
  flags = static_cast<uint8_t>(flags | (record.key.empty() ? 0 : kHasKey));
  flags = static_cast<uint8_t>(flags | (record.payload_is_big ? kPayloadIsBig : 0));
  flags = static_cast<uint8_t>(flags | (record.last_error.empty() ? 0 : kHasError));
  return flags;
}

// Reads what DecodeTimerHead and DecodeJobRecord have in common and returns the flags.
template <typename Record>
uint8_t ReadHead(SealReader* in, Record* record) {
  const uint8_t flags = in->U8();
  const uint8_t kind = flags & kDueKindMask;
  const bool known = kind == static_cast<uint8_t>(DueKind::kRelative) ||
                     kind == static_cast<uint8_t>(DueKind::kAbsolute);
  if (!known || (flags & ~kKnownFlags) != 0) {
    in->Reject();
  }
  record->due_kind = static_cast<DueKind>(kind);
  record->payload_is_big = (flags & kPayloadIsBig) != 0;
  record->queue = QueueId{in->Varint32()};
  record->priority = in->Varint32();
  record->due = WallFromMillis(in->Signed());
  if (record->due_kind == DueKind::kRelative) {
    record->boot_id = in->U64();
    record->boot_due = BootFromMillis(in->Signed());
  }
  return flags;
}

// Extension flags of versions 2 to 5: which of the fields added after version 1 are present.
constexpr uint8_t kHasDelay = 0x01;
constexpr uint8_t kHasCounters = 0x02;
constexpr uint8_t kHasEvents = 0x04;
constexpr uint8_t kHasUser = 0x08;     // versions 3 and 5, where it is always set
constexpr uint8_t kHasReturns = 0x10;  // versions 4 and 5, where it is always set
constexpr uint8_t kKnownExtensions = 0x1f;

bool HasUser(uint8_t version) {
  return version == kRecordVersion3 || version == kRecordVersion5;
}

bool HasReturns(uint8_t version) {
  return version == kRecordVersion4 || version == kRecordVersion5;
}

uint8_t Extensions(const JobRecord& record) {
  const bool counted = (record.timeouts | record.releases | record.buries | record.kicks) != 0;
  return static_cast<uint8_t>((record.delay ? kHasDelay : 0) | (counted ? kHasCounters : 0) |
                              (record.events.empty() ? 0 : kHasEvents) |
                              (record.user.empty() ? 0 : kHasUser) |
                              (record.returns == 0 ? 0 : kHasReturns));
}

// The oldest version that can hold the record.
uint8_t VersionFor(const JobRecord& record) {
  if (record.returns != 0) {
    return record.user.empty() ? kRecordVersion4 : kRecordVersion5;
  }
  if (!record.user.empty()) {
    return kRecordVersion3;
  }
  return Extensions(record) != 0 ? kRecordVersion2 : kRecordVersion;
}

void AppendExtension(std::string* out, const JobRecord& record) {
  const uint8_t extensions = Extensions(record);
  AppendU8(out, extensions);
  if ((extensions & kHasDelay) != 0) {
    AppendSigned(out, record.delay->count());
  }
  if ((extensions & kHasCounters) != 0) {
    AppendVarint(out, record.timeouts);
    AppendVarint(out, record.releases);
    AppendVarint(out, record.buries);
    AppendVarint(out, record.kicks);
  }
  if ((extensions & kHasEvents) != 0) {
    AppendEvents(out, record.created, record.events);
  }
  if ((extensions & kHasUser) != 0) {
    AppendBytes(out, record.user);
  }
  if ((extensions & kHasReturns) != 0) {
    AppendVarint(out, record.returns);
  }
}

void ReadExtension(SealReader* in, uint8_t version, JobRecord* record) {
  const uint8_t extensions = in->U8();
  if (extensions == 0 || (extensions & ~kKnownExtensions) != 0 ||
      ((extensions & kHasUser) != 0) != HasUser(version) ||
      ((extensions & kHasReturns) != 0) != HasReturns(version)) {
    in->Reject();
  }
  if ((extensions & kHasDelay) != 0) {
    record->delay = Millis(in->Signed());
  }
  if ((extensions & kHasCounters) != 0) {
    record->timeouts = in->Varint32();
    record->releases = in->Varint32();
    record->buries = in->Varint32();
    record->kicks = in->Varint32();
  }
  if ((extensions & kHasEvents) != 0) {
    record->events = ReadEvents(in, record->created);
  }
  if ((extensions & kHasUser) != 0) {
    record->user = in->Bytes();
    if (record->user.empty()) {
      in->Reject();
    }
  }
  if ((extensions & kHasReturns) != 0) {
    record->returns = in->Varint32();
    if (record->returns == 0) {
      in->Reject();
    }
  }
}

std::string Subject(JobId id) {
  return "job " + std::to_string(ToInt(id));
}

StatusOr<JobId> IdOfKey(Table table, std::string_view key) {
  if (table == Table::kDead) {
    DELAYD_ASSIGN_OR_RETURN(const DeadKeyParts parts, ParseDeadKey(key));
    return parts.id;
  }
  DELAYD_CHECK(table == Table::kTimers);
  DELAYD_ASSIGN_OR_RETURN(const TimerKeyParts parts, ParseTimerKey(key));
  return parts.id;
}

}  // namespace

std::optional<Millis> DelayOf(const JobRecord& record) {
  if (record.delay) {
    return record.delay->count() < 0 ? std::nullopt : record.delay;
  }
  if (record.due_kind == DueKind::kRelative) {
    return record.due - record.created;
  }
  return std::nullopt;
}

void AppendJobFields(std::string* out, const JobRecord& record) {
  const uint8_t version = VersionFor(record);
  AppendU8(out, version);
  AppendU8(out, Flags(record));
  AppendVarint(out, ToInt(record.queue));
  AppendVarint(out, record.priority);
  AppendSigned(out, ToMillis(record.due));
  if (record.due_kind == DueKind::kRelative) {
    AppendU64(out, record.boot_id);
    AppendSigned(out, ToMillis(record.boot_due));
  }
  AppendSigned(out, Distance(ToMillis(record.created), ToMillis(record.due)));
  AppendVarint(out, record.attempts);
  AppendVarint(out, record.max_attempts);
  AppendSigned(out, record.lease.count());
  AppendSigned(out, record.expires_after.count());
  if (!record.key.empty()) {
    AppendU64(out, record.fingerprint);
    AppendBytes(out, record.key);
  }
  if (!record.last_error.empty()) {
    AppendBytes(out, record.last_error);
  }
  if (version != kRecordVersion) {
    AppendExtension(out, record);
  }
  if (record.payload_is_big) {
    AppendVarint(out, record.payload_bytes);
  } else {
    out->append(record.payload);
  }
}

void AppendJobRecord(std::string* out, Table table, std::string_view key, const JobRecord& record) {
  const size_t begin = out->size();
  AppendJobFields(out, record);
  Seal(table, key, begin, out);
}

std::string EncodeJobRecord(Table table, std::string_view key, const JobRecord& record) {
  std::string out;
  out.reserve(80 + record.key.size() + record.last_error.size() + record.payload.size());
  AppendJobRecord(&out, table, key, record);
  return out;
}

JobRecord ReadJobFields(SealReader* reader, uint8_t version) {
  SealReader& in = *reader;
  JobRecord record;
  const uint8_t flags = ReadHead(&in, &record);
  record.created = WallFromMillis(Back(ToMillis(record.due), in.Signed()));
  record.attempts = in.Varint32();
  record.max_attempts = in.Varint32();
  record.lease = Millis(in.Signed());
  record.expires_after = Millis(in.Signed());
  if ((flags & kHasKey) != 0) {
    record.fingerprint = in.U64();
    record.key = in.Bytes();
  }
  if ((flags & kHasError) != 0) {
    record.last_error = in.Bytes();
  }
  if (version != kRecordVersion) {
    ReadExtension(&in, version, &record);
  }
  if (record.payload_is_big) {
    record.payload_bytes = in.Varint();
  } else {
    record.payload = in.Rest();
    record.payload_bytes = record.payload.size();
  }
  return record;
}

StatusOr<JobRecord> DecodeJobRecord(Table table, std::string_view key, std::string_view value) {
  DELAYD_ASSIGN_OR_RETURN(const JobId id, IdOfKey(table, key));
  SealReader in(table, key, value, kRecordVersion5);
  JobRecord record = ReadJobFields(&in, in.version());
  record.id = id;
  DELAYD_RETURN_IF_ERROR(in.Finish([&] { return Subject(record.id); }));
  return record;
}

StatusOr<TimerHead> DecodeTimerHead(std::string_view key, std::string_view value) {
  SealReader in(Table::kTimers, key, value, kRecordVersion5);
  TimerHead head;
  const uint8_t flags = ReadHead(&in, &head);
  head.plain = (flags & (kHasKey | kPayloadIsBig)) == 0 && !HasUser(in.version());
  const Status status = in.FinishHead();
  if (!status.ok()) {
    DELAYD_ASSIGN_OR_RETURN(const TimerKeyParts parts, ParseTimerKey(key));
    return status.WithContext(Subject(parts.id));
  }
  return head;
}

std::string EncodeBigPayload(std::string_view key, std::string_view payload) {
  std::string out;
  out.reserve(payload.size() + 5);
  AppendU8(&out, kRecordVersion);
  out.append(payload);
  Seal(Table::kBig, key, 0, &out);
  return out;
}

StatusOr<std::string_view> DecodeBigPayload(std::string_view key, std::string_view value) {
  DELAYD_ASSIGN_OR_RETURN(const JobId id, ParseIndexKey(key));
  SealReader in(Table::kBig, key, value);
  const std::string_view payload = in.Rest();
  DELAYD_RETURN_IF_ERROR(in.Finish([&] { return "payload of " + Subject(id); }));
  return payload;
}

}  // namespace delayd::storage
