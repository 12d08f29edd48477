// The bytes on disk, spelled out: a change here is a change of the format and needs a new version.
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "sample_records.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/seal.h"

namespace delayd::storage {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    out += digits;
  }
  return out;
}

TEST(RecordGoldenTest, AbsoluteJob) {
  EXPECT_EQ(Hex(EncodeJobRecord(Table::kTimers, kTimer, PlainRecord())),
            "0102038008c0c9b2fef962c0a9070019c0a907007b226f726465725f6964223a313030317d17bc5232");
}

TEST(RecordGoldenTest, RelativeJobWithKeyAndError) {
  EXPECT_EQ(
      Hex(EncodeJobRecord(Table::kTimers, kTimer, FullRecord())),
      "0115038008c0c9b2fef9620123456789abcdeff0a9985ec0a9070219c0a90780bab703fedcba98765432100a6f72"
      "6465723a313030310d657869742073746174757320317b226f726465725f6964223a313030317dc689fcb1");
}

TEST(RecordGoldenTest, JobWithBigPayload) {
  EXPECT_EQ(Hex(EncodeJobRecord(Table::kTimers, kTimer, BigRecord())),
            "011d038008c0c9b2fef9620123456789abcdeff0a9985ec0a9070219c0a90780bab703fedcba9876543210"
            "0a6f726465723a313030310d657869742073746174757320318827f66ebac9");
}

TEST(RecordGoldenTest, JobOfVersion2) {
  EXPECT_EQ(
      Hex(EncodeJobRecord(Table::kTimers, kTimer, LivedRecord())),
      "0215038008c0c9b2fef9620123456789abcdeff0a9985ec0a9070219c0a90780bab703fedcba9876543210"
      "0a6f726465723a313030310d6578697420737461747573203107e0d403010200ac02020190b90707686f73"
      "743a31370d65786974207374617475732031050100007b226f726465725f6964223a313030317d432345e0");
}

TEST(RecordGoldenTest, JobOfVersion3) {
  EXPECT_EQ(
      Hex(EncodeJobRecord(Table::kTimers, kTimer, OwnedRecord())),
      "0302038008c0c9b2fef962c0a9070019c0a9070008087569643a313030307b226f726465725f6964223a31303031"
      "7d74cf9122");
}

TEST(RecordGoldenTest, PausedQueue) {
  const QueueRecord::Pause pause{.since = WallFromMillis(1'700'000'000'000)};
  EXPECT_EQ(Hex(EncodeQueueRecord("orders", {.id = QueueId{3}, .pause = pause})),
            "02030180a0abfef9623ec751af");
  const QueueRecord::Pause timed{
      .since = WallFromMillis(1'700'000'000'000),
      .timed = QueueRecord::Timed{
          .length = Millis(60'000), .boot_id = 5, .boot_end = BootFromMillis(98'765'432)}};
  EXPECT_EQ(Hex(EncodeQueueRecord("orders", {.id = QueueId{3}, .pause = timed})),
            "02030280a0abfef962c0a9070000000000000005f0a9985e38717cfc");
}

TEST(RecordGoldenTest, DeadJob) {
  const std::string key = DeadKey(QueueId{3}, WallFromMillis(1'700'000'090'000), JobId{kSampleId});
  EXPECT_EQ(Hex(EncodeJobRecord(Table::kDead, key, PlainRecord())),
            "0102038008c0c9b2fef962c0a9070019c0a907007b226f726465725f6964223a313030317d0cbe0ac8");
}

TEST(RecordGoldenTest, BigPayload) {
  EXPECT_EQ(Hex(EncodeBigPayload(IndexKey(JobId{kSampleId}), "payload")),
            "017061796c6f6164b602b9cb");
}

TEST(RecordGoldenTest, Index) {
  const std::string key = IndexKey(JobId{kSampleId});
  EXPECT_EQ(Hex(EncodeIndexRecord(key,
                                  {.place = IndexRecord::Place::kTimers,
                                   .queue = QueueId{3},
                                   .at = WallFromMillis(1'700'000'060'000)})),
            "010103c0c9b2fef9626cc1a879");
  EXPECT_EQ(Hex(EncodeIndexRecord(key,
                                  {.place = IndexRecord::Place::kDead,
                                   .queue = QueueId{300},
                                   .at = WallFromMillis(1'700'000'090'000)})),
            "0102ac02a09eb6fef962627e569e");
  EXPECT_EQ(Hex(EncodeIndexRecord(key,
                                  {.place = IndexRecord::Place::kTimers,
                                   .queue = QueueId{3},
                                   .at = WallFromMillis(1'700'000'060'000),
                                   .plain = true})),
            "020103c0c9b2fef962756ea450");
}

TEST(RecordGoldenTest, Key) {
  const std::string key = ClientKey(QueueId{3}, "order:1001");
  EXPECT_EQ(Hex(EncodeKeyRecord(key, {.id = JobId{kSampleId}, .fingerprint = 0x0102030405060708})),
            "01002a0102030405060708b68b5482");
  EXPECT_EQ(Hex(EncodeKeyRecord(key,
                                {.id = JobId{kSampleId},
                                 .fingerprint = 0x0102030405060708,
                                 .expiry = WallFromMillis(1'700'086'400'000),
                                 .finished = WallFromMillis(1'700'000'000'000),
                                 .cancelled = true})),
            "01072a01020304050607088090ded0fa6280a0abfef962ac4ae3e8");
}

TEST(RecordGoldenTest, Done) {
  const std::string key = DoneKey(WallFromMillis(1'700'000'090'000), JobId{kSampleId});
  EXPECT_EQ(Hex(EncodeDoneRecord(key,
                                 {.queue = QueueId{3},
                                  .key = "order:1001",
                                  .cancelled = true,
                                  .attempts = 2,
                                  .due = WallFromMillis(1'700'000'060'000),
                                  .created = WallFromMillis(1'700'000'000'000)})),
            "01010302c0c9b2fef96280a0abfef9626f726465723a31303031767b4451");
}

TEST(RecordGoldenTest, DoneVersion2) {
  const std::string key = DoneKey(WallFromMillis(1'700'000'090'000), JobId{kSampleId});
  EXPECT_EQ(Hex(EncodeDoneRecord(key,
                                 {.queue = QueueId{3},
                                  .key = "order:1001",
                                  .cancelled = true,
                                  .attempts = 2,
                                  .due = WallFromMillis(1'700'000'060'000),
                                  .created = WallFromMillis(1'700'000'000'000),
                                  .kept_until = WallFromMillis(1'700'003'690'000)})),
            "0201a0d8ed81fa620302c0c9b2fef96280a0abfef9626f726465723a313030315811f57e");
  const JobRecord story = SampleJobRecords().front();
  EXPECT_EQ(
      Hex(EncodeDoneRecord(key, {.kept_until = WallFromMillis(1'700'003'690'000), .story = story})),
      "0202a0d8ed81fa620102038008c0c9b2fef962c0a9070019c0a907007b226f726465725f6964223a313030317df0"
      "161f8e");
}

TEST(RecordGoldenTest, QueueAndCounts) {
  EXPECT_EQ(Hex(EncodeQueueRecord("orders", {.id = QueueId{3}})), "010369fd8b20");
  const std::string counts = QueueCountsKey(QueueId{3});
  EXPECT_EQ(Hex(EncodeQueueCounts(counts, {.pending = 300, .dead = 2, .done = std::nullopt})),
            "01ac02029472fe27");
  EXPECT_EQ(Hex(EncodeQueueCounts(counts, {.pending = 300, .dead = 2, .done = 5})),
            "02ac020205db5c6f72");
}

TEST(RecordGoldenTest, Meta) {
  EXPECT_EQ(Hex(EncodeNumber(kSchemaKey, kSchemaVersion)), "0100000000000000011afc89aa");
  EXPECT_EQ(Hex(EncodeClockRecord(kClockKey,
                                  {.wall = WallFromMillis(1'700'000'000'000),
                                   .boot_id = 0x0123456789abcdef,
                                   .boot = BootFromMillis(98'765'432)})),
            "0180a0abfef9620123456789abcdeff0a9985e179dc721");
}

// The newest version of a record that `decode` knows: the others are well sealed, and refused.
template <typename Decode>
int NewestVersion(Table table, std::string_view key, const std::string& sealed, Decode decode) {
  int newest = 0;
  for (int version = 1; version < 256; ++version) {
    std::string value = sealed.substr(0, sealed.size() - sizeof(uint32_t));
    value[0] = static_cast<char>(version);
    Seal(table, key, 0, &value);
    const auto decoded = decode(key, value);
    if (decoded.ok() || decoded.status().message().find("newer delayd") == std::string::npos) {
      newest = version;
    }
  }
  return newest;
}

// A program that knows fewer of them serves the other jobs and names those it cannot read, which is
// no way to find out that an upgrade was taken back. So once a release has these, whoever adds a
// version adds a schema too: then the older program refuses the store before it touches it.
TEST(RecordGoldenTest, TheVersionsOfSchema1) {
  ASSERT_EQ(kSchemaVersion, 1U);
  const std::string index = IndexKey(JobId{kSampleId});
  const std::string client = ClientKey(QueueId{3}, "order:1001");
  const std::string done = DoneKey(WallFromMillis(1'700'000'000'000), JobId{kSampleId});
  const std::string counts = QueueCountsKey(QueueId{3});
  const auto timer = [](std::string_view key, std::string_view value) {
    return DecodeJobRecord(Table::kTimers, key, value);
  };
  EXPECT_EQ(
      NewestVersion(
          Table::kTimers, kTimer, EncodeJobRecord(Table::kTimers, kTimer, PlainRecord()), timer),
      5);
  EXPECT_EQ(NewestVersion(Table::kBig, index, EncodeBigPayload(index, "x"), DecodeBigPayload), 1);
  EXPECT_EQ(NewestVersion(Table::kIndex, index, EncodeIndexRecord(index, {}), DecodeIndexRecord),
            2);
  EXPECT_EQ(NewestVersion(Table::kKeys, client, EncodeKeyRecord(client, {}), DecodeKeyRecord), 1);
  EXPECT_EQ(NewestVersion(Table::kDone, done, EncodeDoneRecord(done, {}), DecodeDoneRecord), 2);
  EXPECT_EQ(
      NewestVersion(Table::kQueues, "orders", EncodeQueueRecord("orders", {}), DecodeQueueRecord),
      2);
  EXPECT_EQ(NewestVersion(Table::kMeta, counts, EncodeQueueCounts(counts, {}), DecodeQueueCounts),
            2);
  EXPECT_EQ(NewestVersion(Table::kMeta, kEpochKey, EncodeNumber(kEpochKey, 7), DecodeNumber), 1);
  EXPECT_EQ(
      NewestVersion(Table::kMeta, kClockKey, EncodeClockRecord(kClockKey, {}), DecodeClockRecord),
      1);
}

}  // namespace
}  // namespace delayd::storage
