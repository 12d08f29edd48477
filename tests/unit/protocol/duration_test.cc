#include "protocol/duration.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "tests/unit/protocol/seeded.h"

namespace delayd::protocol {
namespace {

TEST(DurationTest, ReadsTheFormsPeopleWrite) {
  const std::pair<const char*, int64_t> cases[] = {{"0", 0},
                                                   {"0s", 0},
                                                   {"500ms", 500},
                                                   {"90s", 90'000},
                                                   {"90sec", 90'000},
                                                   {"30m", 1'800'000},
                                                   {"30min", 1'800'000},
                                                   {"1h30m", 5'400'000},
                                                   {"1h 30m", 5'400'000},
                                                   {"5 min", 300'000},
                                                   {"1 h 30  m", 5'400'000},
                                                   {"1.5h", 5'400'000},
                                                   {"0.1h", 360'000},
                                                   {"0.001s", 1},
                                                   {"0.50s", 500},
                                                   {"0.5000000000000s", 500},
                                                   {"0.015625s", -1},
                                                   {"0.0000003125w", 189},
                                                   {"0.0009765625d", 84'375},
                                                   {"0.9999999999w", -1},
                                                   {"0.00000000001w", -1},
                                                   {"2d", 172'800'000},
                                                   {"1w 2d", 777'600'000},
                                                   {"1s500ms", 1500},
                                                   {"36500d", limits::kDelayMsMax},
                                                   {"PT30M", 1'800'000},
                                                   {"PT1H30M", 5'400'000},
                                                   {"P1DT12H", 129'600'000},
                                                   {"P2W", 1'209'600'000},
                                                   {"PT0.5S", 500},
                                                   {"PT0S", 0}};
  for (const auto& [text, millis] : cases) {
    const auto read = ParseDuration(text);
    if (millis < 0) {
      EXPECT_FALSE(read.ok()) << text;
      continue;
    }
    ASSERT_TRUE(read.ok()) << text << ": " << read.status().message();
    EXPECT_EQ(read->count(), millis) << text;
  }
}

TEST(DurationTest, RefusesWhatIsAmbiguousOrWrongAndSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {{"", "is empty"},
                                                       {"90", "write 90s for seconds"},
                                                       {"1h 30", "has no unit"},
                                                       {"1h30", "has no unit"},
                                                       {"-5s", "is negative"},
                                                       {"s", "is not understood"},
                                                       {"soon", "is not understood"},
                                                       {"1.h", "is not understood"},
                                                       {".5h", "is not understood"},
                                                       {"30M", "unknown unit"},
                                                       {"3 ", "has no unit"},
                                                       {"3 4h", "has no unit"},
                                                       {"3fortnights", "unknown unit"},
                                                       {"30m1h", "out of order"},
                                                       {"1m1m", "out of order"},
                                                       {"1m1min", "out of order"},
                                                       {"0.5ms", "finer than a millisecond"},
                                                       {"0.0001s", "finer than a millisecond"},
                                                       {"1s ", "is not understood"},
                                                       {"36501d", "too long"},
                                                       {"36500d1ms", "too long"},
                                                       {"99999999999999999999w", "too long"},
                                                       {"P1M", "whose length varies"},
                                                       {"P1Y", "whose length varies"},
                                                       {"P", "is not understood"},
                                                       {"PT", "is not understood"},
                                                       {"P1DT", "is not understood"},
                                                       {"PT1D", "is not understood"},
                                                       {"PT30", "is not understood"},
                                                       {"PT30M1H", "is not understood"},
                                                       {"P1TT1H", "is not understood"},
                                                       {"pt30m", "is not understood"}};
  for (const auto& [text, why] : cases) {
    const auto read = ParseDuration(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().reason(), "invalid_duration");
    EXPECT_NE(read.status().message().find(why), std::string::npos)
        << text << ": " << read.status().message();
  }
}

TEST(DurationTest, MessagesCannotForgeLines) {
  const auto read = ParseDuration("5s\nerror: all is lost");
  EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
}

TEST(DurationTest, WritesTheShortForm) {
  const std::pair<int64_t, const char*> cases[] = {{0, "0s"},
                                                   {1, "1ms"},
                                                   {1500, "1s500ms"},
                                                   {60'000, "1m"},
                                                   {90'000, "1m30s"},
                                                   {5'400'000, "1h30m"},
                                                   {172'800'000, "2d"},
                                                   {-1500, "-1s500ms"}};
  for (const auto& [millis, text] : cases) {
    EXPECT_EQ(FormatDuration(Millis(millis)), text);
  }
}

TEST(DurationTest, WhatIsWrittenReadsBack) {
  std::mt19937_64 random = SeededRandom();
  for (int i = 0; i < 20'000; ++i) {
    // Every magnitude, not only the long ones.
    const auto bound = static_cast<uint64_t>(limits::kDelayMsMax) >> random() % 42;
    const Millis duration(static_cast<int64_t>(random() % (bound + 1)));
    const auto read = ParseDuration(FormatDuration(duration));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, duration);
  }
}

TEST(DurationTest, RandomTextNeverBreaksTheParser) {
  std::mt19937_64 random = SeededRandom();
  constexpr std::string_view kLetters = "0159.PTWDHMSwdhms -\n";
  for (int i = 0; i < 50'000; ++i) {
    std::string text(random() % 12, ' ');
    for (char& c : text) {
      c = kLetters[random() % kLetters.size()];
    }
    const auto read = ParseDuration(text);
    if (read.ok()) {
      EXPECT_EQ(ParseDuration(FormatDuration(*read)).value(), *read) << text;
    }
  }
}

}  // namespace
}  // namespace delayd::protocol
