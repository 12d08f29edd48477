#include "storage/record.h"

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "sample_records.h"
#include "storage/keys.h"
#include "storage/seal.h"

namespace delayd::storage {
namespace {

using ::testing::HasSubstr;

const std::string kDead = DeadKey(QueueId{3}, WallFromMillis(1'700'000'090'000), JobId{kSampleId});

void ExpectEqual(const JobRecord& a, const JobRecord& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.queue, b.queue);
  EXPECT_EQ(a.due_kind, b.due_kind);
  EXPECT_EQ(a.due, b.due);
  EXPECT_EQ(a.boot_id, b.boot_id);
  EXPECT_EQ(a.boot_due, b.boot_due);
  EXPECT_EQ(a.created, b.created);
  EXPECT_EQ(a.priority, b.priority);
  EXPECT_EQ(a.attempts, b.attempts);
  EXPECT_EQ(a.max_attempts, b.max_attempts);
  EXPECT_EQ(a.lease, b.lease);
  EXPECT_EQ(a.expires_after, b.expires_after);
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.last_error, b.last_error);
  EXPECT_EQ(a.delay, b.delay);
  EXPECT_EQ(a.timeouts, b.timeouts);
  EXPECT_EQ(a.releases, b.releases);
  EXPECT_EQ(a.buries, b.buries);
  EXPECT_EQ(a.kicks, b.kicks);
  EXPECT_EQ(a.user, b.user);
  EXPECT_EQ(a.returns, b.returns);
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.payload_is_big, b.payload_is_big);
  EXPECT_EQ(a.payload_bytes, b.payload_bytes);
  EXPECT_EQ(a.payload, b.payload);
}

TEST(JobRecordTest, DecodesToWhatWasEncoded) {
  for (const JobRecord& record : SampleJobRecords()) {
    const auto timer =
        DecodeJobRecord(Table::kTimers, kTimer, EncodeJobRecord(Table::kTimers, kTimer, record));
    ASSERT_TRUE(timer.ok()) << timer.status().message();
    ExpectEqual(*timer, record);
    const auto dead =
        DecodeJobRecord(Table::kDead, kDead, EncodeJobRecord(Table::kDead, kDead, record));
    ASSERT_TRUE(dead.ok()) << dead.status().message();
    ExpectEqual(*dead, record);
  }
}

TEST(JobRecordTest, HeadAgreesWithTheWholeRecord) {
  for (const JobRecord& record : SampleJobRecords()) {
    const auto head = DecodeTimerHead(kTimer, EncodeJobRecord(Table::kTimers, kTimer, record));
    ASSERT_TRUE(head.ok());
    EXPECT_EQ(head->queue, record.queue);
    EXPECT_EQ(head->due_kind, record.due_kind);
    EXPECT_EQ(head->due, record.due);
    EXPECT_EQ(head->boot_id, record.boot_id);
    EXPECT_EQ(head->boot_due, record.boot_due);
    EXPECT_EQ(head->priority, record.priority);
    EXPECT_EQ(head->payload_is_big, record.payload_is_big);
    EXPECT_EQ(head->plain, IsPlain(record));
  }
}

TEST(JobRecordTest, AppendWritesTheSameBytesBehindOthers) {
  std::string out = "before";
  AppendJobRecord(&out, Table::kTimers, kTimer, FullRecord());
  EXPECT_EQ(out, "before" + EncodeJobRecord(Table::kTimers, kTimer, FullRecord()));
}

TEST(JobRecordTest, HeadOfATruncatedRecordIsRefused) {
  const std::string value = EncodeJobRecord(Table::kTimers, kTimer, FullRecord());
  for (size_t size = 0; size < 20; ++size) {
    EXPECT_FALSE(DecodeTimerHead(kTimer, value.substr(0, size)).ok()) << size;
  }
}

TEST(JobRecordTest, RecordUnderAnotherKeyOrTableIsFound) {
  const std::string value = EncodeJobRecord(Table::kTimers, kTimer, FullRecord());
  const std::string other = TimerKey(WallFromMillis(1'700'000'060'000), JobId{43});
  EXPECT_FALSE(DecodeJobRecord(Table::kTimers, other, value).ok());
  EXPECT_FALSE(DecodeJobRecord(Table::kDead, kDead, value).ok());
}

TEST(JobRecordTest, MessagesNameTheJobAndTheByte) {
  std::string value = EncodeJobRecord(Table::kTimers, kTimer, FullRecord());
  EXPECT_THAT(DecodeJobRecord(Table::kTimers, kTimer, value.substr(0, 12)).status().message(),
              HasSubstr("job 42: record truncated at byte"));
  value[value.size() - 6] ^= 1;
  const auto flipped = DecodeJobRecord(Table::kTimers, kTimer, value);
  EXPECT_EQ(flipped.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(flipped.status().message(), HasSubstr("job 42: record checksum is 0x"));
}

// Every record of the schema as bytes, with the function that reads it again.
struct Sample {
  std::string name;
  std::string value;
  std::function<Status(std::string_view value)> decode;
};

template <typename Decode>
Sample MakeSample(std::string name, std::string value, Decode decode) {
  return {std::move(name), std::move(value), [decode](std::string_view bytes) {
            const auto result = decode(bytes);
            return result.ok() ? OkStatus() : result.status();
          }};
}

std::vector<Sample> AllSamples() {
  std::vector<Sample> samples;
  for (const JobRecord& record : SampleJobRecords()) {
    samples.push_back(
        MakeSample("timer", EncodeJobRecord(Table::kTimers, kTimer, record), [](auto value) {
          return DecodeJobRecord(Table::kTimers, kTimer, value);
        }));
    samples.push_back(
        MakeSample("dead", EncodeJobRecord(Table::kDead, kDead, record), [](auto value) {
          return DecodeJobRecord(Table::kDead, kDead, value);
        }));
  }
  static const std::string big = IndexKey(JobId{kSampleId});
  samples.push_back(MakeSample("big", EncodeBigPayload(big, std::string(300, 'x')), [](auto value) {
    return DecodeBigPayload(big, value);
  }));
  static const std::string index = IndexKey(JobId{kSampleId});
  const IndexRecord place{.place = IndexRecord::Place::kDead,
                          .queue = QueueId{3},
                          .at = WallFromMillis(1'700'000'000'000)};
  samples.push_back(MakeSample("index", EncodeIndexRecord(index, place), [](auto value) {
    return DecodeIndexRecord(index, value);
  }));
  const IndexRecord plain{.place = IndexRecord::Place::kTimers,
                          .queue = QueueId{3},
                          .at = WallFromMillis(1'700'000'000'000),
                          .plain = true};
  samples.push_back(MakeSample("plain index", EncodeIndexRecord(index, plain), [](auto value) {
    return DecodeIndexRecord(index, value);
  }));
  static const std::string client = ClientKey(QueueId{3}, "order:1001");
  const KeyRecord live{.id = JobId{kSampleId}, .fingerprint = 77};
  const KeyRecord finished{.id = JobId{kSampleId},
                           .fingerprint = 77,
                           .expiry = WallFromMillis(1'700'000'900'000),
                           .finished = WallFromMillis(1'700'000'000'000),
                           .cancelled = true};
  for (const KeyRecord& record : {live, finished}) {
    samples.push_back(MakeSample("key", EncodeKeyRecord(client, record), [](auto value) {
      return DecodeKeyRecord(client, value);
    }));
  }
  static const std::string done = DoneKey(WallFromMillis(1'700'000'000'000), JobId{kSampleId});
  const DoneRecord done_record{.queue = QueueId{3},
                               .key = "order:1001",
                               .cancelled = true,
                               .attempts = 1,
                               .due = WallFromMillis(1'700'000'000'000),
                               .created = WallFromMillis(1'699'000'000'000)};
  samples.push_back(MakeSample("done", EncodeDoneRecord(done, done_record), [](auto value) {
    return DecodeDoneRecord(done, value);
  }));
  DoneRecord kept = done_record;
  kept.kept_until = WallFromMillis(1'700'000'060'000);
  samples.push_back(MakeSample("kept done", EncodeDoneRecord(done, kept), [](auto value) {
    return DecodeDoneRecord(done, value);
  }));
  kept.story = SampleJobRecords().back();
  samples.push_back(MakeSample("done with its story", EncodeDoneRecord(done, kept), [](auto value) {
    return DecodeDoneRecord(done, value);
  }));
  for (const auto& pause :
       {QueueRecord::Pause{.since = WallFromMillis(1'700'000'000'000)},
        QueueRecord::Pause{.since = WallFromMillis(1'700'000'000'000),
        .timed = QueueRecord::Timed{
            .length = Millis(60'000), .boot_id = 5, .boot_end = BootFromMillis(9)}}}) {
    samples.push_back(MakeSample("paused queue",
                                 EncodeQueueRecord("orders", {.id = QueueId{3}, .pause = pause}),
                                 [](auto value) { return DecodeQueueRecord("orders", value); }));
  }
  samples.push_back(MakeSample("queue",
                               EncodeQueueRecord("orders", {.id = QueueId{3}}),
                               [](auto value) { return DecodeQueueRecord("orders", value); }));
  static const std::string counts = QueueCountsKey(QueueId{3});
  samples.push_back(MakeSample("counts",
                               EncodeQueueCounts(counts, {.pending = 300, .dead = 2}),
                               [](auto value) { return DecodeQueueCounts(counts, value); }));
  samples.push_back(MakeSample("number",
                               EncodeNumber(kLowWaterMarkKey, 1'700'000'000'000),
                               [](auto value) { return DecodeNumber(kLowWaterMarkKey, value); }));
  const ClockRecord clock{
      .wall = WallFromMillis(1'700'000'000'000), .boot_id = 5, .boot = BootFromMillis(6)};
  samples.push_back(MakeSample("clock", EncodeClockRecord(kClockKey, clock), [](auto value) {
    return DecodeClockRecord(kClockKey, value);
  }));
  return samples;
}

TEST(RecordDamageTest, P9EveryFlippedBitIsFound) {
  for (const Sample& sample : AllSamples()) {
    ASSERT_TRUE(sample.decode(sample.value).ok()) << sample.name;
    for (size_t bit = 0; bit < sample.value.size() * 8; ++bit) {
      std::string damaged = sample.value;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_EQ(sample.decode(damaged).code(), StatusCode::kDataLoss)
          << sample.name << " bit " << bit;
    }
  }
}

TEST(RecordDamageTest, P9EveryReplacedByteIsFound) {
  for (const Sample& sample : AllSamples()) {
    for (size_t at = 0; at < sample.value.size(); ++at) {
      for (const char byte : {'\0', '\xff', 'A', '\x80'}) {
        if (sample.value[at] == byte) {
          continue;
        }
        std::string damaged = sample.value;
        damaged[at] = byte;
        EXPECT_EQ(sample.decode(damaged).code(), StatusCode::kDataLoss)
            << sample.name << " byte " << at;
      }
    }
  }
}

TEST(RecordDamageTest, P9EveryTruncationIsFound) {
  for (const Sample& sample : AllSamples()) {
    for (size_t size = 0; size < sample.value.size(); ++size) {
      EXPECT_EQ(sample.decode(std::string_view(sample.value).substr(0, size)).code(),
                StatusCode::kDataLoss)
          << sample.name << " cut to " << size;
    }
    EXPECT_FALSE(sample.decode(sample.value + '\0').ok()) << sample.name;
  }
}

// What a newer program, or a faulty writer, would leave: the checksum is good.
TEST(RecordDamageTest, P9WellSealedNonsenseIsRefused) {
  const auto sealed = [](std::string body) {
    Seal(Table::kMeta, kEpochKey, 0, &body);
    return body;
  };
  const std::string good = EncodeNumber(kEpochKey, 7);
  const std::string body = good.substr(0, good.size() - 4);
  ASSERT_TRUE(DecodeNumber(kEpochKey, sealed(body)).ok());
  EXPECT_THAT(DecodeNumber(kEpochKey, sealed("\x02" + body.substr(1))).status().message(),
              HasSubstr("record version 2"));
  EXPECT_THAT(DecodeNumber(kEpochKey, sealed(body + "x")).status().message(),
              HasSubstr("malformed"));
  EXPECT_THAT(DecodeNumber(kEpochKey, sealed(body.substr(0, 1))).status().message(),
              HasSubstr("malformed"));
}

// Each is one byte of a good record, under a good checksum again.
TEST(RecordDamageTest, P9AByteThatNoWriterWritesIsRefused) {
  const auto status_with = [](Table table,
                              std::string_view key,
                              std::string value,
                              size_t at,
                              uint8_t byte,
                              const auto& decode) {
    value[at] = static_cast<char>(byte);
    value.resize(value.size() - 4);
    Seal(table, key, 0, &value);
    return std::string(decode(key, value).status().message());
  };
  const auto expect_refused = [&](Table table,
                                  std::string_view key,
                                  const std::string& value,
                                  size_t at,
                                  std::initializer_list<uint8_t> bytes,
                                  const auto& decode) {
    const auto good = static_cast<uint8_t>(value.at(at));
    EXPECT_EQ(status_with(table, key, value, at, good, decode), "");
    for (const uint8_t byte : bytes) {
      EXPECT_THAT(status_with(table, key, value, at, byte, decode), HasSubstr("malformed"))
          << "byte " << at << " is " << int{byte};
    }
  };
  const auto job = [](auto key, auto value) { return DecodeJobRecord(Table::kTimers, key, value); };
  const auto expect_job_refused = [&](const JobRecord& record,
                                      size_t at,
                                      std::initializer_list<uint8_t> bytes) {
    expect_refused(
        Table::kTimers, kTimer, EncodeJobRecord(Table::kTimers, kTimer, record), at, bytes, job);
  };
  expect_job_refused(PlainRecord(), 1, {0x00, 0x03, 0x82});  // flags

  // Behind the fields of version 1: which others there are, and each of them.
  const auto extension = [](const JobRecord& record) {
    JobRecord older = record;
    older.events.clear();
    older.user.clear();
    older.returns = 0;
    return EncodeJobRecord(Table::kTimers, kTimer, older).size() - 4 - older.payload.size();
  };
  const JobRecord owned = OwnedRecord();
  expect_job_refused(owned, extension(owned), {0x00, 0x10, 0x28});
  expect_job_refused(ReturnedRecord(), extension(ReturnedRecord()), {0x00, 0x08, 0x30});
  JobRecord told = PlainRecord();
  told.events = {{.kind = JobEvent::Kind::kNacked}};
  expect_job_refused(told, extension(told) + 1, {0, limits::kJobEventsMax + 1});
  expect_job_refused(told, extension(told) + 2, {0, 0x7f});  // the kind of the event
  told.events.front().kind = JobEvent::Kind::kReplaced;
  expect_job_refused(
      told, extension(told) + 2, {static_cast<uint8_t>(JobEvent::Kind::kReplaced) + 1});
  told.events.resize(limits::kJobEventsMax, told.events.front());
  expect_job_refused(told, extension(told) + 1, {limits::kJobEventsMax + 1});
  expect_job_refused(owned, extension(owned) + 1, {0});  // the length of the user's name
  JobRecord returned = ReturnedRecord();
  returned.returns = 1;
  expect_job_refused(returned, extension(returned) + 1, {0});

  const std::string index = IndexKey(JobId{kSampleId});
  for (const bool plain : {false, true}) {
    expect_refused(Table::kIndex,
                   index,
                   EncodeIndexRecord(index, {.place = IndexRecord::Place::kDead, .plain = plain}),
                   1,
                   {0, static_cast<uint8_t>(plain ? 3 : 4)},
                   DecodeIndexRecord);
  }
  const std::string client = ClientKey(QueueId{3}, "k");
  expect_refused(Table::kKeys, client, EncodeKeyRecord(client, {}), 1, {0x08}, DecodeKeyRecord);
  const std::string done = DoneKey(WallFromMillis(1), JobId{kSampleId});
  expect_refused(Table::kDone, done, EncodeDoneRecord(done, {}), 1, {0x02}, DecodeDoneRecord);
  const DoneRecord kept{.kept_until = WallFromMillis(0), .story = LivedRecord()};
  expect_refused(Table::kDone,
                 done,
                 EncodeDoneRecord(done, kept),
                 3,
                 {0, 6},
                 DecodeDoneRecord);  // its version
  expect_refused(Table::kQueues,
                 "q",
                 EncodeQueueRecord("q", {.id = QueueId{1}, .pause = QueueRecord::Pause{}}),
                 2,
                 {0, 3},
                 DecodeQueueRecord);
}

TEST(SmallRecordTest, DecodeToWhatWasEncoded) {
  const std::string client = ClientKey(QueueId{3}, "k");
  const KeyRecord key{.id = JobId{9},
                      .fingerprint = ~uint64_t{0},
                      .expiry = WallFromMillis(2),
                      .finished = WallFromMillis(1),
                      .cancelled = true};
  const auto key_again = DecodeKeyRecord(client, EncodeKeyRecord(client, key));
  ASSERT_TRUE(key_again.ok());
  EXPECT_EQ(key_again->id, key.id);
  EXPECT_EQ(key_again->fingerprint, key.fingerprint);
  EXPECT_EQ(key_again->expiry, key.expiry);
  EXPECT_EQ(key_again->finished, key.finished);
  EXPECT_TRUE(key_again->cancelled);

  const std::string done = DoneKey(WallFromMillis(7), JobId{9});
  const auto done_again = DecodeDoneRecord(done,
                                           EncodeDoneRecord(done,
                                                            {.queue = QueueId{4},
                                                             .key = "k",
                                                             .cancelled = false,
                                                             .attempts = 3,
                                                             .due = WallFromMillis(5),
                                                             .created = WallFromMillis(1)}));
  ASSERT_TRUE(done_again.ok());
  EXPECT_EQ(done_again->queue, QueueId{4});
  EXPECT_EQ(done_again->key, "k");
  EXPECT_FALSE(done_again->cancelled);
  EXPECT_EQ(done_again->attempts, 3U);
  EXPECT_EQ(done_again->due, WallFromMillis(5));
  EXPECT_EQ(done_again->created, WallFromMillis(1));

  const DoneRecord kept{.kept_until = WallFromMillis(8), .story = LivedRecord()};
  const std::string kept_key = DoneKey(WallFromMillis(7), kept.story->id);
  const auto kept_again = DecodeDoneRecord(kept_key, EncodeDoneRecord(kept_key, kept));
  ASSERT_TRUE(kept_again.ok() && kept_again->story);
  ExpectEqual(*kept_again->story, *kept.story);
  EXPECT_EQ(kept_again->queue, kept.story->queue);
  EXPECT_EQ(kept_again->key, kept.story->key);
  EXPECT_EQ(kept_again->attempts, kept.story->attempts);
  EXPECT_EQ(kept_again->due, kept.story->due);
  EXPECT_EQ(kept_again->created, kept.story->created);

  EXPECT_EQ(DecodeQueueRecord("q", EncodeQueueRecord("q", {.id = QueueId{8}}))->id, QueueId{8});
  const std::string counts = QueueCountsKey(QueueId{3});
  const auto counts_again = DecodeQueueCounts(counts, EncodeQueueCounts(counts, {300, 2}));
  EXPECT_EQ(counts_again->pending, 300U);
  EXPECT_EQ(counts_again->dead, 2U);
  EXPECT_EQ(*DecodeNumber("lwm", EncodeNumber("lwm", ~uint64_t{0})), ~uint64_t{0});
}

TEST(RecordDamageTest, P9AKeyOfAWrongLengthIsRefusedByEveryDecoder) {
  const std::string value = EncodeJobRecord(Table::kTimers, kTimer, FullRecord());
  const auto expect_refused = [](const auto& decoded) {
    EXPECT_EQ(decoded.status().code(), StatusCode::kDataLoss);
    EXPECT_THAT(decoded.status().message(), HasSubstr(" bytes, and it should have "));
  };
  const std::string_view wrong = "key";
  expect_refused(DecodeJobRecord(Table::kTimers, wrong, value));
  expect_refused(DecodeJobRecord(Table::kDead, wrong, value));
  expect_refused(DecodeTimerHead(wrong, value.substr(0, 3)));
  expect_refused(DecodeBigPayload(wrong, value));
  expect_refused(DecodeIndexRecord(wrong, value));
  expect_refused(DecodeKeyRecord(wrong, value));
  expect_refused(DecodeDoneRecord(wrong, value));
  expect_refused(DecodeQueueCounts(wrong, value));
}

// The engine reads the expiry of whatever has finished.
TEST(RecordDamageTest, P9AKeyWithOneOfTwoTimesIsRefused) {
  const std::string client = ClientKey(QueueId{3}, "k");
  const WallTime time = WallFromMillis(1);
  for (const KeyRecord& record : {KeyRecord{.expiry = time}, KeyRecord{.finished = time}}) {
    EXPECT_THAT(DecodeKeyRecord(client, EncodeKeyRecord(client, record)).status().message(),
                HasSubstr("malformed"));
  }
}

TEST(RecordDamageTest, P9AFieldThatNoWriterWritesIsRefusedByTheHeadAndTheWhole) {
  std::string body;
  AppendU8(&body, kRecordVersion);
  AppendU8(&body, static_cast<uint8_t>(DueKind::kAbsolute));
  AppendVarint(&body, uint64_t{1} << 40);  // a queue's number has 32 bits
  for (int field = 0; field < 7; ++field) {
    AppendVarint(&body, 0);
  }
  std::string whole = body;
  Seal(Table::kTimers, kTimer, 0, &whole);
  EXPECT_THAT(DecodeJobRecord(Table::kTimers, kTimer, whole).status().message(),
              HasSubstr("job 42: record malformed"));
  EXPECT_THAT(DecodeTimerHead(kTimer, whole).status().message(),
              HasSubstr("job 42: record head malformed"));
}

}  // namespace
}  // namespace delayd::storage
