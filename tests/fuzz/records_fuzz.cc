// Decoders of everything that is stored. The first byte chooses the decoder; the rest is a value,
// tried as it is (damage), and with a checksum that fits (a writer gone wrong). What decodes must
// encode to something that decodes to the same bytes.
#include <cstdlib>
#include <string>
#include <string_view>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/seal.h"

namespace {

using namespace delayd;
using namespace delayd::storage;

void Require(bool claim) {
  if (!claim) {
    std::abort();
  }
}

// Decode and Encode of one kind, and the table and key that the checksum covers.
template <typename Decode, typename Encode>
void RoundTrip(std::string_view value, const Decode& decode, const Encode& encode) {
  const auto first = decode(value);
  if (!first.ok()) {
    return;
  }
  const std::string encoded = encode(*first);
  const auto second = decode(encoded);
  Require(second.ok());
  Require(encode(*second) == encoded);
}

template <typename Decode, typename Encode>
void Try(Table table,
         const std::string& key,
         std::string_view body,
         const Decode& decode,
         const Encode& encode) {
  RoundTrip(body, decode, encode);
  std::string sealed(body);
  Seal(table, key, 0, &sealed);
  RoundTrip(sealed, decode, encode);
}

void TryJobs(Table table, const std::string& key, std::string_view body) {
  Try(
      table,
      key,
      body,
      [&](std::string_view value) { return DecodeJobRecord(table, key, value); },
      [&](const JobRecord& record) { return EncodeJobRecord(table, key, record); });
}

void TryKeys(std::string_view body) {
  (void)ParseTimerKey(body);
  (void)ParseIndexKey(body);
  (void)ParseByQueueKey(body);
  (void)ParseClientKey(body);
  (void)ParseDeadKey(body);
  (void)ParseDoneKey(body);
  (void)ParseQueueCountsKey(body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string id_key = IndexKey(JobId{42});
  switch (data[0] % 8) {
    case 0: {
      const std::string key = TimerKey(WallFromMillis(1'700'000'060'000), JobId{42});
      TryJobs(Table::kTimers, key, body);
      (void)DecodeTimerHead(key, body);
      break;
    }
    case 1:
      TryJobs(Table::kDead, DeadKey(QueueId{3}, WallFromMillis(5), JobId{42}), body);
      break;
    case 2:
      Try(
          Table::kIndex,
          id_key,
          body,
          [&](std::string_view value) { return DecodeIndexRecord(id_key, value); },
          [&](const IndexRecord& record) { return EncodeIndexRecord(id_key, record); });
      break;
    case 3: {
      const std::string key = ClientKey(QueueId{3}, "order:1001");
      Try(
          Table::kKeys,
          key,
          body,
          [&](std::string_view value) { return DecodeKeyRecord(key, value); },
          [&](const KeyRecord& record) { return EncodeKeyRecord(key, record); });
      break;
    }
    case 4: {
      const std::string key = DoneKey(WallFromMillis(5), JobId{42});
      Try(
          Table::kDone,
          key,
          body,
          [&](std::string_view value) { return DecodeDoneRecord(key, value); },
          [&](const DoneRecord& record) { return EncodeDoneRecord(key, record); });
      break;
    }
    case 5: {
      const std::string key = QueueCountsKey(QueueId{3});
      Try(
          Table::kMeta,
          key,
          body,
          [&](std::string_view value) { return DecodeQueueCounts(key, value); },
          [&](const QueueCounts& counts) { return EncodeQueueCounts(key, counts); });
      Try(
          Table::kMeta,
          std::string(kClockKey),
          body,
          [&](std::string_view value) { return DecodeClockRecord(kClockKey, value); },
          [&](const ClockRecord& record) { return EncodeClockRecord(kClockKey, record); });
      break;
    }
    case 6:
      Try(
          Table::kBig,
          id_key,
          body,
          [&](std::string_view value) { return DecodeBigPayload(id_key, value); },
          [&](std::string_view payload) { return EncodeBigPayload(id_key, payload); });
      break;
    default:
      TryKeys(body);
      break;
  }
  return 0;
}
