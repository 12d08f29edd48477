#include "protocol/stats_json.h"

#include <gtest/gtest.h>

namespace delayd::protocol {
namespace {

TEST(StatsJsonTest, QueuesReadBack) {
  const QueueCounts orders{.name = "orders",
                           .scheduled = 1,
                           .ready = 2,
                           .leased = 3,
                           .dead = 4,
                           .paused = true,
                           .enqueued = 9,
                           .acked = 5,
                           .cancelled = 6};
  EXPECT_EQ(QueueToJson(orders),
            R"({"name":"orders","scheduled":1,"ready":2,"leased":3,"dead":4,"paused":true,)"
            R"("enqueued":9,"acked":5,"cancelled":6})");
  const auto read = ParseQueues(QueuesToJson({orders, {}}));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->queues.size(), 2U);
  EXPECT_EQ(QueueToJson(read->queues[0]), QueueToJson(orders));
  EXPECT_EQ(read->next_cursor, "");
  EXPECT_EQ(QueuesToJson({}), R"({"queues":[]})");
  EXPECT_EQ(ParseQueues(QueuesToJson({orders}, "0-1f"))->next_cursor, "0-1f");
}

TEST(StatsJsonTest, CapsAndATimedPauseReadBack) {
  const std::string json =
      R"({"name":"q","scheduled":0,"ready":3,"leased":0,"dead":0,"damaged":2,"paused":true,)"
      R"("pause_left":"90m",)"
      R"("concurrency":7,"max_jobs":8,"rate":"100/s","burst":9,"enqueued":0,"acked":0,)"
      R"("cancelled":0})";
  const auto read = ParseQueue(json);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->burst, 9U);
  EXPECT_EQ(read->pause_left, Millis(5'400'000));
  EXPECT_EQ(QueueToJson(*read),
            R"({"name":"q","scheduled":0,"ready":3,"leased":0,"dead":0,"damaged":2,"paused":true,)"
            R"("pause_left":"1h30m","concurrency":7,"max_jobs":8,"rate":"100/s","burst":9,)"
            R"("enqueued":0,"acked":0,"cancelled":0})");
}

TEST(StatsJsonTest, StatsKeepTheirOrder) {
  const std::string json = StatsToJson(
      {{"scheduled", uint64_t{7}}, {"acked", UINT64_MAX}, {"next_due", std::string("x")}});
  EXPECT_EQ(json, R"({"scheduled":7,"acked":18446744073709551615,"next_due":"x"})");
  const auto read = ParseStats(json);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(StatsToJson(*read), json);
}

TEST(StatsJsonTest, ABlankRequestDrains) {
  for (const char* blank : {"", " \r\n"}) {
    const auto read = ParseDrainRequest(blank);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(*read);
  }
  EXPECT_FALSE(*ParseDrainRequest(DrainRequestToJson(false)));
}

TEST(StatsJsonTest, HealthReadsBack) {
  const auto read = ParseHealth(HealthToJson({"ok", "0.1.0"}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->status, "ok");
  EXPECT_EQ(read->version, "0.1.0");
  EXPECT_EQ(read->Why(), "");
  const Health ill{"not ready", "0.1.0", {{"disk_full", "3 MiB left"}, {"clock_suspect", "1970"}}};
  EXPECT_EQ(ParseHealth(HealthToJson(ill))->Why(), "disk_full: 3 MiB left; clock_suspect: 1970");
}

}  // namespace
}  // namespace delayd::protocol
