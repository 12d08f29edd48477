#include "protocol/timestamp.h"

#include <chrono>

#include "base/limits.h"
#include "protocol/nearest.h"

#include <cctz/time_zone.h>

namespace delayd::protocol {
namespace {

Status RefuseTime(std::string_view text, const std::string& why) {
  return InvalidArgument("time " + Quoted(text) + " " + why, "invalid_time");
}

// A '0' in the pattern matches any digit, any other character only itself. cctz alone would accept
// years of any length and fields of one digit.
bool HasShape(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) {
    return false;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (pattern[i] == '0' ? !digit : text[i] != pattern[i]) {
      return false;
    }
  }
  return true;
}

constexpr std::string_view kDatePattern = "0000-00-00";
constexpr std::string_view kClockPattern = "00:00:00";
constexpr size_t kSecondsEnd = kDatePattern.size() + 1 + kClockPattern.size();

bool IsZone(std::string_view zone) {
  return zone == "Z" || zone == "z" || HasShape(zone, "+00:00") || HasShape(zone, "-00:00");
}

// Milliseconds from the digits after the point, rounded up.
int64_t FractionMillis(std::string_view digits) {
  int64_t millis = 0;
  for (size_t i = 0; i < 3; ++i) {
    millis = millis * 10 + (i < digits.size() ? digits[i] - '0' : 0);
  }
  const bool finer = digits.find_first_not_of('0', 3) != std::string_view::npos;
  return finer ? millis + 1 : millis;
}

}  // namespace

std::optional<Millis> TakeFraction(std::string_view* text) {
  if (!text->starts_with('.')) {
    return Millis(0);
  }
  const size_t end = std::min(text->find_first_not_of("0123456789", 1), text->size());
  if (end == 1) {
    return std::nullopt;
  }
  const Millis fraction(FractionMillis(text->substr(1, end - 1)));
  text->remove_prefix(end);
  return fraction;
}

StatusOr<WallTime> ParseTimestamp(std::string_view text) {
  const Status malformed =
      RefuseTime(text, "is not understood; write it like 2027-01-01T09:00:00Z or with +08:00");
  const std::string_view separators = "Tt ";
  if (text.size() < kSecondsEnd || !HasShape(text.substr(0, kDatePattern.size()), kDatePattern) ||
      separators.find(text[kDatePattern.size()]) == std::string_view::npos ||
      !HasShape(text.substr(kDatePattern.size() + 1, kClockPattern.size()), kClockPattern)) {
    return malformed;
  }
  std::string_view zone = text.substr(kSecondsEnd);
  const std::optional<Millis> fraction = TakeFraction(&zone);
  if (!fraction) {
    return malformed;
  }
  if (zone.empty()) {
    return RefuseTime(text, "has no zone; end it with Z for UTC or an offset like +08:00");
  }
  if (!IsZone(zone)) {
    return malformed;
  }
  // cctz accepts only the separator in its format, and only an upper-case Z.
  std::string seconds(text.substr(0, kSecondsEnd));
  seconds[kDatePattern.size()] = 'T';
  seconds += zone == "z" ? "Z" : zone;
  cctz::time_point<cctz::seconds> point;
  if (!cctz::parse("%Y-%m-%dT%H:%M:%S%Ez", seconds, cctz::utc_time_zone(), &point)) {
    return RefuseTime(text, "names no day or hour that exists; check the calendar");
  }
  const int64_t millis = point.time_since_epoch().count() * 1000 + fraction->count();
  if (millis < 0 || millis > limits::kWallMsMax) {
    return RefuseTime(text, "is out of range; use 1970-01-01T00:00:00Z to 2286-11-20T17:46:39Z");
  }
  return WallFromMillis(millis);
}

std::optional<WallTime> ParseHttpDate(std::string_view text) {
  std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds> time;
  return cctz::parse("%a, %d %b %Y %H:%M:%S GMT", std::string(text), cctz::utc_time_zone(), &time)
             ? std::optional<WallTime>(time)
             : std::nullopt;
}

}  // namespace delayd::protocol
