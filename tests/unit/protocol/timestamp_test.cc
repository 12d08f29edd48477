#include "protocol/timestamp.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "tests/unit/protocol/seeded.h"

namespace delayd::protocol {
namespace {

TEST(TimestampTest, ReadsRfc3339) {
  const std::pair<const char*, int64_t> cases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"2027-01-01T09:00:00Z", 1'798'794'000'000},
      {"2027-01-01t09:00:00z", 1'798'794'000'000},
      {"2027-01-01 09:00:00Z", 1'798'794'000'000},
      {"2027-01-01T09:00:00+08:00", 1'798'765'200'000},
      {"2027-01-01T09:00:00-00:30", 1'798'795'800'000},
      {"2027-01-01T09:00:00.5Z", 1'798'794'000'500},
      {"2027-01-01T09:00:00.123Z", 1'798'794'000'123},
      {"2027-01-01T09:00:00.123000000000Z", 1'798'794'000'123},
      {"2028-02-29T00:00:00Z", 1'835'395'200'000},
      {"2286-11-20T17:46:39.999Z", limits::kWallMsMax}};
  for (const auto& [text, millis] : cases) {
    const auto read = ParseTimestamp(text);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(ToMillis(*read), millis) << text;
  }
}

TEST(TimestampTest, FinerFractionsAreRoundedUpSoThatNothingIsEarly) {
  EXPECT_EQ(ToMillis(ParseTimestamp("1970-01-01T00:00:00.0000001Z").value()), 1);
  EXPECT_EQ(ToMillis(ParseTimestamp("1970-01-01T00:00:00.9991Z").value()), 1000);
}

TEST(TimestampTest, RefusesWhatIsNoInstantAndSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "is not understood"},
      {"tomorrow", "is not understood"},
      {"2027-01-01", "is not understood"},
      {"2027-01-01T09:00:00", "has no zone"},
      {"2027-01-01T09:00:00.5", "has no zone"},
      {"2027-01-01T09:00:00.Z", "is not understood"},
      {"2027-01-01T09:00Z", "is not understood"},
      {"2027-1-1T09:00:00Z", "is not understood"},
      {"02027-01-01T09:00:00Z", "is not understood"},
      {"2027-01-01T09:00:00+0800", "is not understood"},
      {"2027-01-01T09:00:00Z ", "is not understood"},
      {"2027-02-30T09:00:00Z", "names no day or hour"},
      {"2027-02-29T09:00:00Z", "names no day or hour"},
      {"2027-13-01T09:00:00Z", "names no day or hour"},
      {"2027-01-01T24:00:00Z", "names no day or hour"},
      {"2027-01-01T09:60:00Z", "names no day or hour"},
      {"1969-12-31T23:59:59Z", "out of range"},
      {"2286-11-20T17:46:40Z", "out of range"},
      {"9999-12-31T23:59:59Z", "out of range"}};
  for (const auto& [text, why] : cases) {
    const auto read = ParseTimestamp(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().reason(), "invalid_time");
    EXPECT_NE(read.status().message().find(why), std::string::npos)
        << text << ": " << read.status().message();
  }
}

TEST(TimestampTest, WhatIsWrittenReadsBack) {
  std::mt19937_64 random = SeededRandom();
  for (int i = 0; i < 20'000; ++i) {
    const auto millis = static_cast<int64_t>(random() % (limits::kWallMsMax + 1));
    const std::string text = FormatUtc(WallFromMillis(millis));
    const auto read = ParseTimestamp(text);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(ToMillis(*read), millis) << text;
  }
}

TEST(TimestampTest, ReadsTheDateOfAnAnswer) {
  EXPECT_EQ(ParseHttpDate("Fri, 01 Jan 2027 09:00:00 GMT"), WallFromMillis(1'798'794'000'000));
  for (const char* text :
       {"", "yesterday", "Fri, 01 Jan 2027 09:00:00 CET", "2027-01-01T09:00:00Z"}) {
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
  }
}

TEST(TimestampTest, WritesUtcWithMilliseconds) {
  EXPECT_EQ(FormatUtc(WallFromMillis(1'798'794'000'007)), "2027-01-01T09:00:00.007Z");
  EXPECT_EQ(FormatUtc(WallFromMillis(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatUtc(WallFromMillis(limits::kWallMsMax)), "2286-11-20T17:46:39.999Z");
  EXPECT_EQ(FormatUtc(WallFromMillis(253'402'300'800'000)), "9999-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatUtc(WallFromMillis(-1)), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace delayd::protocol
