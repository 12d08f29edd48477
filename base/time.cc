#include "base/time.h"

#include <algorithm>

namespace delayd {
namespace {

// A job in JSON has up to five times; formatting them with the C library was half of its cost.
template <int kWidth>
void PutDigits(unsigned value, char* at) {
  for (int i = kWidth; i-- > 0; value /= 10) {
    at[i] = static_cast<char>('0' + value % 10);
  }
}

}  // namespace

std::string FormatUtc(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss<Millis> clock(time - day);
  std::string text = "0000-00-00T00:00:00.000Z";
  PutDigits<4>(static_cast<unsigned>(std::clamp(static_cast<int>(date.year()), 0, 9999)), &text[0]);
  PutDigits<2>(static_cast<unsigned>(date.month()), &text[5]);
  PutDigits<2>(static_cast<unsigned>(date.day()), &text[8]);
  PutDigits<2>(static_cast<unsigned>(clock.hours().count()), &text[11]);
  PutDigits<2>(static_cast<unsigned>(clock.minutes().count()), &text[14]);
  PutDigits<2>(static_cast<unsigned>(clock.seconds().count()), &text[17]);
  PutDigits<3>(static_cast<unsigned>(clock.subseconds().count()), &text[20]);
  return text;
}

}  // namespace delayd
