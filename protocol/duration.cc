#include "protocol/duration.h"

#include <array>
#include <cstdint>
#include <optional>

#include "base/limits.h"
#include "protocol/nearest.h"

namespace delayd::protocol {
namespace {

struct Unit {
  std::string_view name;
  int64_t millis;
};

constexpr int64_t kSecond = 1000;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;
constexpr int64_t kWeek = 7 * kDay;

// No whole number of milliseconds needs more: a week is 2^10 of them times an odd number, and no
// unit has more twos. Of a week, the longest unit, so many digits still fit into 64 bits.
constexpr size_t kFractionDigitsMax = 10;

constexpr std::array<Unit, 8> kUnits = {{{"w", kWeek},
                                         {"d", kDay},
                                         {"h", kHour},
                                         {"m", kMinute},
                                         {"min", kMinute},
                                         {"s", kSecond},
                                         {"sec", kSecond},
                                         {"ms", 1}}};

Status RefuseDuration(std::string_view text, const std::string& why) {
  return InvalidArgument("duration " + Quoted(text) + " " + why, "invalid_duration");
}

Status TooLong(std::string_view text) {
  return RefuseDuration(text, "is too long; the longest is 36500d (100 years)");
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view TakeDigits(std::string_view* rest) {
  size_t count = 0;
  while (count < rest->size() && IsDigit((*rest)[count])) {
    ++count;
  }
  const std::string_view digits = rest->substr(0, count);
  rest->remove_prefix(count);
  return digits;
}

// "1.5" split into its whole part and the digits after the point.
struct Number {
  std::string_view whole;
  std::string_view fraction;
};

std::optional<Number> TakeNumber(std::string_view* rest) {
  Number number;
  number.whole = TakeDigits(rest);
  if (number.whole.empty()) {
    return std::nullopt;
  }
  if (!rest->empty() && rest->front() == '.') {
    rest->remove_prefix(1);
    number.fraction = TakeDigits(rest);
    if (number.fraction.empty()) {
      return std::nullopt;
    }
  }
  return number;
}

// In whole milliseconds, without floating point, so that 0.1h is exactly 360000.
StatusOr<int64_t> Multiply(std::string_view text, const Number& number, int64_t unit) {
  int64_t total = 0;
  for (const char digit : number.whole) {
    total = total * 10 + (digit - '0') * unit;
    if (total > limits::kDelayMsMax) {
      return TooLong(text);
    }
  }
  std::string_view fraction = number.fraction;
  while (!fraction.empty() && fraction.back() == '0') {
    fraction.remove_suffix(1);
  }
  if (fraction.size() > kFractionDigitsMax) {
    return RefuseDuration(text, "is finer than a millisecond; round it");
  }
  int64_t numerator = 0;
  int64_t denominator = 1;
  for (const char digit : fraction) {
    numerator = numerator * 10 + (digit - '0');
    denominator *= 10;
  }
  if (numerator * unit % denominator != 0) {
    return RefuseDuration(text, "is finer than a millisecond; round it");
  }
  total += numerator * unit / denominator;
  return total;
}

StatusOr<Millis> Sum(std::string_view text, int64_t total, int64_t part) {
  if (total + part > limits::kDelayMsMax) {
    return TooLong(text);
  }
  return Millis(total + part);
}

// Skips blanks before something else; trailing blanks stay.
void SkipBlanks(std::string_view* rest) {
  while (rest->size() > 1 && rest->front() == ' ') {
    rest->remove_prefix(1);
  }
}

const Unit* TakeUnit(std::string_view* rest) {
  size_t length = 0;
  while (length < rest->size() && (*rest)[length] >= 'a' && (*rest)[length] <= 'z') {
    ++length;
  }
  const std::string_view name = rest->substr(0, length);
  for (const Unit& unit : kUnits) {
    if (unit.name == name) {
      rest->remove_prefix(length);
      return &unit;
    }
  }
  return nullptr;
}

constexpr std::string_view kExample = "; write it like 500ms, 90s, 30m, 1h30m or 2d";

StatusOr<Millis> ParseShort(std::string_view text) {
  std::string_view rest = text;
  int64_t total = 0;
  int64_t previous_unit = kWeek + 1;
  while (!rest.empty()) {
    const std::optional<Number> number = TakeNumber(&rest);
    if (!number.has_value()) {
      return RefuseDuration(text, "is not understood" + std::string(kExample));
    }
    SkipBlanks(&rest);
    if (rest.empty() || rest.front() == ' ' || IsDigit(rest.front())) {
      return RefuseDuration(text,
                            "has no unit; write " + std::string(number->whole) +
                                "s for seconds or " + std::string(number->whole) +
                                "ms for milliseconds");
    }
    const Unit* unit = TakeUnit(&rest);
    if (unit == nullptr) {
      return RefuseDuration(text, "has an unknown unit; the units are w, d, h, m, s and ms");
    }
    if (unit->millis >= previous_unit) {
      return RefuseDuration(text,
                            "has its units out of order; write the larger ones first, each once");
    }
    previous_unit = unit->millis;
    DELAYD_ASSIGN_OR_RETURN(const int64_t part, Multiply(text, *number, unit->millis));
    DELAYD_ASSIGN_OR_RETURN(const Millis sum, Sum(text, total, part));
    total = sum.count();
    SkipBlanks(&rest);
  }
  return Millis(total);
}

// The unit of an ISO 8601 designator; 0 for units whose length varies, -1 for an unknown one.
int64_t IsoUnit(char designator, bool in_time) {
  switch (designator) {
    case 'W':
      return in_time ? -1 : kWeek;
    case 'D':
      return in_time ? -1 : kDay;
    case 'H':
      return in_time ? kHour : -1;
    case 'M':
      return in_time ? kMinute : 0;
    case 'S':
      return in_time ? kSecond : -1;
    case 'Y':
      return in_time ? -1 : 0;
    default:
      return -1;
  }
}

StatusOr<Millis> ParseIso(std::string_view text) {
  const Status malformed =
      RefuseDuration(text, "is not understood; write it like PT30M, P1DT12H or 1d12h");
  std::string_view rest = text.substr(1);
  if (rest.empty() || rest.back() == 'T') {
    return malformed;
  }
  bool in_time = false;
  int64_t total = 0;
  int64_t previous_unit = kWeek + 1;
  while (!rest.empty()) {
    if (rest.front() == 'T' && !in_time) {
      in_time = true;
      rest.remove_prefix(1);
    }
    const std::optional<Number> number = TakeNumber(&rest);
    if (!number.has_value() || rest.empty()) {
      return malformed;
    }
    const int64_t unit = IsoUnit(rest.front(), in_time);
    if (unit == 0) {
      return RefuseDuration(text,
                            "counts months or years, whose length varies; write days, as in P30D");
    }
    if (unit < 0 || unit >= previous_unit) {
      return malformed;
    }
    rest.remove_prefix(1);
    previous_unit = unit;
    DELAYD_ASSIGN_OR_RETURN(const int64_t part, Multiply(text, *number, unit));
    DELAYD_ASSIGN_OR_RETURN(const Millis sum, Sum(text, total, part));
    total = sum.count();
  }
  return Millis(total);
}

}  // namespace

StatusOr<Millis> ParseDuration(std::string_view text) {
  if (text.empty()) {
    return RefuseDuration(text, "is empty" + std::string(kExample));
  }
  if (text == "0") {
    return Millis(0);
  }
  if (text.front() == '-') {
    return RefuseDuration(text, "is negative" + std::string(kExample));
  }
  return text.front() == 'P' ? ParseIso(text) : ParseShort(text);
}

}  // namespace delayd::protocol
