#include "storage/keys.h"

#include "base/coding.h"

namespace delayd::storage {
namespace {

constexpr size_t kTimeAndIdBytes = 16;
constexpr size_t kQueueTimeIdBytes = 20;

WallTime ReadTime(ByteReader* reader) {
  return WallFromMillis(static_cast<int64_t>(reader->U64()));
}

Status WrongLength(std::string_view what, size_t is, size_t should_be) {
  return DataLoss(std::string(what) + ": " + std::to_string(is) + " bytes, and it should have " +
                  std::to_string(should_be));
}

StatusOr<TimerKeyParts> ParseTimeAndId(std::string_view what, std::string_view key) {
  if (key.size() != kTimeAndIdBytes) {
    return WrongLength(what, key.size(), kTimeAndIdBytes);
  }
  ByteReader reader(key);
  TimerKeyParts parts;
  parts.key_due = ReadTime(&reader);
  parts.id = JobId{reader.U64()};
  return parts;
}

// For by_queue and dead.
template <typename Parts>
StatusOr<Parts> ParseQueueTimeAndId(std::string_view what, std::string_view key) {
  if (key.size() != kQueueTimeIdBytes) {
    return WrongLength(what, key.size(), kQueueTimeIdBytes);
  }
  ByteReader reader(key);
  const QueueId queue{reader.U32()};
  const WallTime time = ReadTime(&reader);
  return Parts{queue, time, JobId{reader.U64()}};
}

}  // namespace

StatusOr<TimerKeyParts> ParseTimerKey(std::string_view key) {
  return ParseTimeAndId("timer key", key);
}

StatusOr<JobId> ParseIndexKey(std::string_view key) {
  if (key.size() != sizeof(uint64_t)) {
    return WrongLength("index key", key.size(), sizeof(uint64_t));
  }
  return JobId{ByteReader(key).U64()};
}

StatusOr<ByQueueKeyParts> ParseByQueueKey(std::string_view key) {
  return ParseQueueTimeAndId<ByQueueKeyParts>("by_queue key", key);
}

std::string ClientKey(QueueId queue, std::string_view key) {
  std::string out;
  AppendU32(&out, ToInt(queue));
  out.append(key);
  return out;
}

StatusOr<ClientKeyParts> ParseClientKey(std::string_view key) {
  if (key.size() <= sizeof(uint32_t)) {
    return DataLoss("client key: " + std::to_string(key.size()) +
                    " bytes, and it should have at least 5");
  }
  ByteReader reader(key);
  const QueueId queue{reader.U32()};
  return ClientKeyParts{.queue = queue, .key = key.substr(sizeof(uint32_t))};
}

StatusOr<DeadKeyParts> ParseDeadKey(std::string_view key) {
  return ParseQueueTimeAndId<DeadKeyParts>("dead key", key);
}

StatusOr<TimerKeyParts> ParseDoneKey(std::string_view key) {
  return ParseTimeAndId("done key", key);
}

std::string QueueCountsKey(QueueId queue) {
  std::string key(kQueueCountsPrefix);
  AppendU32(&key, ToInt(queue));
  return key;
}

std::string UserJobsKey(std::string_view user) {
  std::string key(kUserJobsPrefix);
  key.append(user);
  return key;
}

StatusOr<QueueId> ParseQueueCountsKey(std::string_view key) {
  constexpr size_t kBytes = kQueueCountsPrefix.size() + sizeof(uint32_t);
  if (key.size() != kBytes || !key.starts_with(kQueueCountsPrefix)) {
    return WrongLength("count key", key.size(), kBytes);
  }
  return QueueId{ByteReader(key.substr(kQueueCountsPrefix.size())).U32()};
}

}  // namespace delayd::storage
