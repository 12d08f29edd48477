#include "cli/local_time.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/timestamp.h"

namespace delayd::cli {
namespace {

using ::testing::HasSubstr;

cctz::time_zone Zone(const char* name) {
  cctz::time_zone zone;
  EXPECT_TRUE(cctz::load_time_zone(name, &zone)) << name;
  return zone;
}

WallTime At(const char* text) {
  return protocol::ParseTimestamp(text).value();
}

// A Friday, 15:30 in Berlin.
LocalClock Berlin() {
  return {.now = At("2026-11-20T14:30:00Z"), .zone = Zone("Europe/Berlin")};
}

TEST(LocalTimeTest, ReadsTimesAsPeopleWriteThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"2027-01-01T09:00:00Z", "2027-01-01T09:00:00Z"},
      {"2027-01-01T09:00:00.5+08:00", "2027-01-01T01:00:00.5Z"},
      {"2027-01-01 09:00", "2027-01-01T08:00:00Z"},
      {"2027-01-01 Noon", "2027-01-01T11:00:00Z"},
      {"2027-07-01T09:00:30", "2027-07-01T07:00:30Z"},
      {"2027-07-01 09:00:30.25", "2027-07-01T07:00:30.250Z"},
      {"2027-07-01 09:00:59.9991", "2027-07-01T07:01:00Z"},
      {"tomorrow 09:00", "2026-11-21T08:00:00Z"},
      {"tomorrow 09:00:00.007", "2026-11-21T08:00:00.007Z"},
      {"Tomorrow at 9:00", "2026-11-21T08:00:00Z"},
      {"today noon", "2026-11-20T11:00:00Z"},
      {"yesterday 23:59", "2026-11-19T22:59:00Z"},
      {"18:30", "2026-11-20T17:30:00Z"},
      {"09:00", "2026-11-21T08:00:00Z"},
      {"15:30", "2026-11-21T14:30:00Z"},  // this very moment is not ahead
      {"15:30:00.001", "2026-11-20T14:30:00.001Z"},
      {"midnight", "2026-11-20T23:00:00Z"},
      {"fri 16:00", "2026-11-20T15:00:00Z"},
      {"friday 15:00", "2026-11-27T14:00:00Z"},
      {"monday noon", "2026-11-23T11:00:00Z"},
      {"now", "2026-11-20T14:30:00Z"},
      {"+30m", "2026-11-20T15:00:00Z"},
      {"now + 1h30m", "2026-11-20T16:00:00Z"},
      {"Tomorrow AT 09:00", "2026-11-21T08:00:00Z"},
      {"@1800000000", "2027-01-15T08:00:00Z"},
  };
  for (const auto& [text, expected] : cases) {
    const StatusOr<WallTime> time = ParseLocalTime(text, Berlin());
    ASSERT_TRUE(time.ok()) << text << ": " << time.status().message();
    EXPECT_EQ(*time, At(expected)) << text;
  }
}

TEST(LocalTimeTest, RefusesWhatCouldMeanTwoThings) {
  const std::pair<const char*, const char*> cases[] = {
      {"tomorrow", "has no hour; write it like tomorrow 09:00"},
      {"2027-01-01", "has no hour"},
      {"2027-02-30 09:00", "names no day that exists"},
      {"2027-03-28 02:30", "does not exist in this zone"},
      {"2026-10-25 02:30", "comes twice in this zone"},
      {"9", "is not understood"},
      {"25:00", "is not understood"},
      {"10:-5", "is not understood"},
      {"10:30.5", "is not understood"},
      {"10:30:00.", "is not understood"},
      {"10:30:00.-5", "is not understood"},
      {"10:30:-1", "is not understood"},
      {"-1:00", "is not understood"},
      {"2027-01-01 -1:00", "is not understood"},
      {"2027-01-01 10:-5", "is not understood"},
      {"soon", "is not understood"},
      {"", "is not understood"},
      {"+30", "has no unit"},
      {"@yesterday", "is no count of seconds"},
      {"@", "is no count of seconds"},
      {"@99999999999999999999", "is no count of seconds"},
      {"2027-01-01T09:00:00+8", "is not understood"},
  };
  for (const auto& [text, message] : cases) {
    const StatusOr<WallTime> time = ParseLocalTime(text, Berlin());
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_THAT(time.status().message(), HasSubstr(message)) << text;
  }
}

// On the days of the change, 02:30 is skipped in March and comes twice in October.
TEST(LocalTimeTest, AnHourThatWasChangedAndIsOverMeansTheNextOne) {
  const std::array<const char*, 3> cases[] = {
      {"2027-03-28T10:00:00Z", "02:30", "2027-03-29T00:30:00Z"},
      {"2027-03-28T10:00:00Z", "sun 02:30", "2027-04-04T00:30:00Z"},
      {"2027-10-31T10:00:00Z", "02:30", "2027-11-01T01:30:00Z"},
      {"2027-10-31T10:00:00Z", "sunday 02:30", "2027-11-07T01:30:00Z"},
      // The clocks go on at one o'clock UTC, and the second 02:30 is at half past one.
      {"2027-03-28T01:00:00Z", "02:30", "2027-03-29T00:30:00Z"},
      {"2027-10-31T01:30:00Z", "02:30", "2027-11-01T01:30:00Z"},
      {"2027-03-28T00:59:59Z", "02:30", ""},
      {"2027-10-31T01:29:59Z", "02:30", ""},
  };
  for (const auto& [now, text, expected] : cases) {
    const StatusOr<WallTime> time =
        ParseLocalTime(text, {.now = At(now), .zone = Zone("Europe/Berlin")});
    EXPECT_EQ(time.ok() ? FormatUtc(*time) : "", *expected == 0 ? "" : FormatUtc(At(expected)))
        << now << " " << text;
  }
}

TEST(LocalTimeTest, NoLocalTimeIsReadInAZoneThatIsNotKnown) {
  const LocalClock clock{.now = At("2026-11-20T14:30:00Z"), .unknown_zone = "CST-8"};
  for (const char* text : {"2027-01-01 09:00", "tomorrow 09:00", "18:30"}) {
    const StatusOr<WallTime> time = ParseLocalTime(text, clock);
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_THAT(time.status().message(), HasSubstr("no zone that is known here: 'CST-8'"));
  }
  for (const char* text : {"2027-01-01T09:00:00Z", "2027-01-01T09:00:00+08:00", "+30m", "@0"}) {
    EXPECT_TRUE(ParseLocalTime(text, clock).ok()) << text;
  }
}

TEST(LocalTimeTest, WritesTheOffsetAndReadsItBack) {
  const WallTime time = At("2027-01-01T09:00:00.123Z");
  EXPECT_EQ(FormatLocalTime(time, cctz::utc_time_zone()), "2027-01-01T09:00:00.123Z");
  EXPECT_EQ(FormatLocalTime(time, Zone("Europe/Berlin")), "2027-01-01T10:00:00.123+01:00");
  EXPECT_EQ(FormatLocalTime(time, Zone("Asia/Kolkata")), "2027-01-01T14:30:00.123+05:30");
  // Zero, but a zone that leaves it in summer.
  EXPECT_EQ(FormatLocalTime(time, Zone("Europe/London")), "2027-01-01T09:00:00.123+00:00");
  for (const char* zone : {"UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia"}) {
    EXPECT_EQ(ParseLocalTime(FormatLocalTime(time, Zone(zone)), {}).value(), time) << zone;
  }
}

}  // namespace
}  // namespace delayd::cli
