#include "storage/keys.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/limits.h"

namespace delayd::storage {
namespace {

constexpr int64_t kSomeMillis[] = {0, 1, 255, 256, 65536, 1'700'000'000'000, limits::kWallMsMax};
constexpr uint64_t kSomeIds[] = {1, 255, 256, uint64_t{1} << 32, limits::kJobIdMax};

TEST(KeysTest, TimerKeyRoundTrips) {
  for (const int64_t ms : kSomeMillis) {
    for (const uint64_t id : kSomeIds) {
      const auto parts = ParseTimerKey(TimerKey(WallFromMillis(ms), JobId{id}));
      ASSERT_TRUE(parts.ok());
      EXPECT_EQ(ToMillis(parts->key_due), ms);
      EXPECT_EQ(ToInt(parts->id), id);
    }
  }
}

TEST(KeysTest, TimerKeysSortByDueThenId) {
  std::string before;
  for (const int64_t ms : kSomeMillis) {
    for (const uint64_t id : kSomeIds) {
      const std::string key = TimerKey(WallFromMillis(ms), JobId{id});
      EXPECT_LT(before, key) << ms << " " << id;
      before = key;
    }
  }
}

TEST(KeysTest, TimeBefore1970IsWrittenAs1970) {
  EXPECT_EQ(TimerKey(WallFromMillis(-1), JobId{7}), TimerKey(WallFromMillis(0), JobId{7}));
}

TEST(KeysTest, ByQueueKeysSortByQueueThenDueThenId) {
  std::string before;
  for (const uint32_t queue : {1U, 255U, 256U, std::numeric_limits<uint32_t>::max()}) {
    for (const int64_t ms : kSomeMillis) {
      const std::string key = ByQueueKey(QueueId{queue}, WallFromMillis(ms), JobId{9});
      EXPECT_LT(before, key);
      before = key;
      const auto parts = ParseByQueueKey(key);
      ASSERT_TRUE(parts.ok());
      EXPECT_EQ(ToInt(parts->queue), queue);
      EXPECT_EQ(ToMillis(parts->key_due), ms);
      EXPECT_EQ(ToInt(parts->id), 9U);
    }
  }
}

TEST(KeysTest, RemainingKeysRoundTrip) {
  EXPECT_EQ(*ParseIndexKey(IndexKey(JobId{4711})), JobId{4711});
  EXPECT_EQ(ParseClientKey(ClientKey(QueueId{3}, "order:1"))->key, "order:1");
  EXPECT_EQ(ParseClientKey(ClientKey(QueueId{3}, "order:1"))->queue, QueueId{3});
  EXPECT_EQ(ParseDeadKey(DeadKey(QueueId{3}, WallFromMillis(5), JobId{6}))->id, JobId{6});
  EXPECT_EQ(ParseDeadKey(DeadKey(QueueId{3}, WallFromMillis(5), JobId{6}))->died,
            WallFromMillis(5));
  EXPECT_EQ(ParseDoneKey(DoneKey(WallFromMillis(5), JobId{6}))->id, JobId{6});
  EXPECT_EQ(*ParseQueueCountsKey(QueueCountsKey(QueueId{77})), QueueId{77});
}

TEST(KeysTest, EveryWrongLengthIsRefused) {
  const std::string longest(40, 'x');
  for (size_t size = 0; size <= longest.size(); ++size) {
    const std::string_view key = std::string_view(longest).substr(0, size);
    EXPECT_EQ(ParseTimerKey(key).ok(), size == 16) << size;
    EXPECT_EQ(ParseDoneKey(key).ok(), size == 16) << size;
    EXPECT_EQ(ParseIndexKey(key).ok(), size == 8) << size;
    EXPECT_EQ(ParseByQueueKey(key).ok(), size == 20) << size;
    EXPECT_EQ(ParseDeadKey(key).ok(), size == 20) << size;
    EXPECT_EQ(ParseClientKey(key).ok(), size >= 5) << size;
  }
  const std::string counts = QueueCountsKey(QueueId{77});
  EXPECT_FALSE(ParseQueueCountsKey(counts + "x").ok());
  EXPECT_FALSE(ParseQueueCountsKey("other" + counts.substr(5)).ok());
  EXPECT_EQ(ParseTimerKey("short").status().code(), StatusCode::kDataLoss);
}

TEST(KeysTest, BytesOnDiskStayWhatTheyAre) {
  const WallTime due = WallFromMillis(0x0102030405060708);
  EXPECT_EQ(TimerKey(due, JobId{0x1112131415161718}),
            "\x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14\x15\x16\x17\x18");
  EXPECT_EQ(ByQueueKey(QueueId{0x21222324}, due, JobId{0x1112131415161718}),
            "\x21\x22\x23\x24\x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14\x15\x16\x17\x18");
  EXPECT_EQ(ClientKey(QueueId{0x21222324}, "key"), "\x21\x22\x23\x24key");
  EXPECT_EQ(QueueCountsKey(QueueId{0x21222324}), "count/\x21\x22\x23\x24");
}

}  // namespace
}  // namespace delayd::storage
