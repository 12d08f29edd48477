#include "daemon/http/http_date.h"

#include <array>
#include <chrono>
#include <cstdio>

namespace delayd::http {
namespace {

constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array kMonths = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

void HttpDate::Set(WallTime now) {
  const auto second =
      std::chrono::floor<std::chrono::seconds>(std::chrono::milliseconds(ToMillis(now)));
  if (second.count() == second_ && !text_.empty()) {
    return;
  }
  second_ = second.count();
  const std::chrono::sys_seconds time(second);
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(),
                                   text.size(),
                                   "%s, %02u %s %04d %02d:%02d:%02d GMT",
                                   kDays.at(std::chrono::weekday(day).c_encoding()),
                                   static_cast<unsigned>(date.day()),
                                   kMonths.at(static_cast<unsigned>(date.month()) - 1),
                                   static_cast<int>(date.year()),
                                   static_cast<int>(clock.hours().count()),
                                   static_cast<int>(clock.minutes().count()),
                                   static_cast<int>(clock.seconds().count()));
  text_.assign(text.data(), static_cast<size_t>(length));
}

}  // namespace delayd::http
