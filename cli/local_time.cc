#include "cli/local_time.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "protocol/duration.h"
#include "protocol/nearest.h"
#include "protocol/timestamp.h"

#include <cctz/civil_time.h>

namespace delayd::cli {
namespace {

Status Refuse(std::string_view text, const std::string& why) {
  return InvalidArgument("time " + protocol::Quoted(text) + " " + why, "invalid_time");
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// Takes `count` digits off the front.
std::optional<int> TakeNumber(std::string_view* text, size_t count) {
  int number = 0;
  // from_chars would accept a sign, which is not a digit.
  if (text->size() < count || text->front() == '-') {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(text->data(), text->data() + count, number);
  if (error != std::errc() || end != text->data() + count) {
    return std::nullopt;
  }
  text->remove_prefix(count);
  return number;
}

bool TakeChar(std::string_view* text, std::string_view any_of) {
  if (text->empty() || any_of.find(text->front()) == std::string_view::npos) {
    return false;
  }
  text->remove_prefix(1);
  return true;
}

struct ClockTime {
  int hour = 0;
  int minute = 0;
  int second = 0;
  Millis fraction{0};
};

// "09:00", "9:00", "09:00:30", "09:00:30.250", "noon", "midnight".
std::optional<ClockTime> ParseClock(std::string_view text) {
  if (text == "noon" || text == "midnight") {
    return ClockTime{.hour = text == "noon" ? 12 : 0};
  }
  const std::optional<int> hour = TakeNumber(&text, text.find(':') == 1 ? 1 : 2);
  if (!hour || !TakeChar(&text, ":")) {
    return std::nullopt;
  }
  const std::optional<int> minute = TakeNumber(&text, 2);
  std::optional<int> second = 0;
  std::optional<Millis> fraction(0);
  if (TakeChar(&text, ":")) {
    second = TakeNumber(&text, 2);
    fraction = protocol::TakeFraction(&text);
  }
  if (!minute || !second || !fraction || !text.empty() || *hour > 23 || *minute > 59 ||
      *second > 59) {
    return std::nullopt;
  }
  return ClockTime{*hour, *minute, *second, *fraction};
}

// A local time, not yet resolved in its zone.
struct CivilTime {
  cctz::civil_second second;
  Millis fraction;
};

CivilTime At(const cctz::civil_day& day, const ClockTime& clock) {
  return {cctz::civil_second(
              day.year(), day.month(), day.day(), clock.hour, clock.minute, clock.second),
          clock.fraction};
}

WallTime OnTheWall(const cctz::time_point<cctz::seconds>& second, Millis fraction) {
  return WallTime(std::chrono::duration_cast<Millis>(second.time_since_epoch()) + fraction);
}

StatusOr<WallTime> Resolve(std::string_view text, const CivilTime& civil, const LocalClock& clock) {
  if (!clock.unknown_zone.empty()) {
    return Refuse(text,
                  "is a local one, and TZ names no zone that is known here: " +
                      protocol::Quoted(clock.unknown_zone) +
                      "; set TZ to one such as Europe/Berlin, write the time with its offset, or "
                      "use --utc");
  }
  const cctz::time_zone& zone = clock.zone;
  const cctz::time_zone::civil_lookup found = zone.lookup(civil.second);
  if (found.kind == cctz::time_zone::civil_lookup::SKIPPED) {
    return Refuse(text,
                  "does not exist in this zone: the clocks go forward over it; choose another");
  }
  if (found.kind == cctz::time_zone::civil_lookup::REPEATED) {
    return Refuse(
        text,
        "comes twice in this zone, as the clocks go back; write it with an offset, like " +
            FormatLocalTime(OnTheWall(found.pre, civil.fraction), zone));
  }
  // The wire format checks the range and words the error.
  return protocol::ParseTimestamp(FormatUtc(OnTheWall(found.pre, civil.fraction)));
}

// Whether the last moment that a local time can mean has passed; for a time that a clock change
// skips, that is the change.
bool IsOver(const CivilTime& civil, const LocalClock& clock) {
  const cctz::time_zone::civil_lookup found = clock.zone.lookup(civil.second);
  return OnTheWall(std::max(found.trans, found.post), civil.fraction) <= clock.now;
}

cctz::civil_day Today(const LocalClock& clock) {
  return cctz::civil_day(
      cctz::convert(std::chrono::time_point_cast<cctz::seconds>(
                        std::chrono::system_clock::time_point(clock.now.time_since_epoch())),
                    clock.zone));
}

constexpr std::array<std::string_view, 7> kWeekdays = {
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};

// The day that a word means, and whether it recurs every week.
std::optional<cctz::civil_day> DayOf(std::string_view word,
                                     const cctz::civil_day& today,
                                     bool* weekly) {
  if (word == "today" || word == "tomorrow" || word == "yesterday") {
    return today + (word == "today" ? 0 : word == "tomorrow" ? 1 : -1);
  }
  for (size_t i = 0; i < kWeekdays.size(); ++i) {
    if (word == kWeekdays[i] || (word.size() == 3 && kWeekdays[i].starts_with(word))) {
      const int ahead = (static_cast<int>(i) - static_cast<int>(cctz::get_weekday(today)) + 7) % 7;
      *weekly = true;
      return today + ahead;
    }
  }
  return std::nullopt;
}

// "tomorrow 09:00", "fri noon", "18:30".
std::optional<StatusOr<WallTime>> ParseDayAndClock(std::string_view text,
                                                   std::string_view lower,
                                                   const LocalClock& clock) {
  const size_t space = std::min(lower.find(' '), lower.size());
  bool weekly = false;
  const cctz::civil_day today = Today(clock);
  const std::optional<cctz::civil_day> day = DayOf(lower.substr(0, space), today, &weekly);
  std::string_view rest = day ? Trim(lower.substr(space)) : lower;
  if (day && rest.empty()) {
    return Refuse(text, "has no hour; write it like " + std::string(lower) + " 09:00");
  }
  if (day && rest.starts_with("at ")) {
    rest = Trim(rest.substr(3));
  }
  const std::optional<ClockTime> when = ParseClock(rest);
  if (!when) {
    return std::nullopt;
  }
  const CivilTime civil = At(day.value_or(today), *when);
  const bool comes_again = !day || weekly;
  if (comes_again && IsOver(civil, clock)) {
    return Resolve(text, At(day.value_or(today) + (weekly ? 7 : 1), *when), clock);
  }
  return Resolve(text, civil, clock);
}

// "2027-01-01 09:00" in local time, with or without seconds and their fraction.
std::optional<StatusOr<WallTime>> ParseCivil(std::string_view text, const LocalClock& clock) {
  std::string_view rest = text;
  const std::optional<int> year = TakeNumber(&rest, 4);
  if (!year || !TakeChar(&rest, "-")) {
    return std::nullopt;
  }
  const std::optional<int> month = TakeNumber(&rest, 2);
  if (!month || !TakeChar(&rest, "-")) {
    return std::nullopt;
  }
  const std::optional<int> day_number = TakeNumber(&rest, 2);
  if (!day_number) {
    return std::nullopt;
  }
  const cctz::civil_day day(*year, *month, *day_number);
  if (day.month() != *month || day.day() != *day_number) {
    return Refuse(text, "names no day that exists; check the calendar");
  }
  if (rest.empty()) {
    return Refuse(text, "has no hour; write it like " + std::string(text) + " 09:00");
  }
  const std::optional<ClockTime> when =
      TakeChar(&rest, "Tt ") ? ParseClock(Lower(Trim(rest))) : std::nullopt;
  if (!when) {
    return std::nullopt;
  }
  return Resolve(text, At(day, *when), clock);
}

}  // namespace

std::optional<StatusOr<Millis>> ParseFromNow(std::string_view text) {
  const std::string lower = Lower(Trim(text));
  std::string_view rest = lower;
  if (rest.starts_with("now")) {
    rest = Trim(rest.substr(3));
    if (rest.empty()) {
      return Millis(0);
    }
  }
  if (rest.starts_with('+')) {
    return protocol::ParseDuration(Trim(rest.substr(1)));
  }
  return std::nullopt;
}

StatusOr<WallTime> ParseLocalTime(std::string_view text, const LocalClock& clock) {
  StatusOr<WallTime> exact = protocol::ParseTimestamp(text);
  if (exact.ok()) {
    return exact;
  }
  if (const std::optional<StatusOr<Millis>> after = ParseFromNow(text)) {
    return after->ok() ? StatusOr<WallTime>(clock.now + **after) : after->status();
  }
  const std::string lower = Lower(Trim(text));
  const std::string_view rest = lower;
  if (rest.starts_with('@')) {
    int64_t seconds = 0;
    const char* end = rest.data() + rest.size();
    const auto [stop, error] = std::from_chars(rest.data() + 1, end, seconds);
    if (error != std::errc() || stop != end || seconds < 0 || seconds > 9'999'999'999) {
      return Refuse(text, "is no count of seconds since 1970; write it like @1800000000");
    }
    return WallFromMillis(seconds * 1000);
  }
  if (std::optional<StatusOr<WallTime>> time = ParseCivil(Trim(text), clock)) {
    return *std::move(time);
  }
  if (std::optional<StatusOr<WallTime>> time = ParseDayAndClock(text, lower, clock)) {
    return *std::move(time);
  }
  // A text that begins like a date was meant as one, and its own error says more.
  if (text.size() > 4 && text[4] == '-') {
    return exact;
  }
  return Refuse(text,
                "is not understood; write it like 2027-01-01T09:00:00Z, '2027-01-01 09:00', "
                "'tomorrow 09:00', 18:30 or +30m");
}

std::string FormatLocalTime(WallTime time, const cctz::time_zone& zone) {
  const std::chrono::time_point<std::chrono::system_clock, Millis> point(time.time_since_epoch());
  const auto found = zone.lookup(point);
  const bool utc = found.offset == 0 && std::string_view(found.abbr) == "UTC";
  return cctz::format(utc ? "%Y-%m-%dT%H:%M:%E3SZ" : "%Y-%m-%dT%H:%M:%E3S%Ez", point, zone);
}

}  // namespace delayd::cli
