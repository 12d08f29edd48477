#include "base/duration_text.h"

namespace delayd {

std::string FormatDuration(Millis duration) {
  struct Unit {
    std::string_view name;
    int64_t millis;
  };

  int64_t rest = duration.count();
  if (rest == 0) {
    return "0s";
  }
  std::string out = rest < 0 ? "-" : "";
  for (const Unit& unit : {Unit{"d", 86'400'000},
                           Unit{"h", 3'600'000},
                           Unit{"m", 60'000},
                           Unit{"s", 1000},
                           Unit{"ms", 1}}) {
    const int64_t count = rest / unit.millis;
    rest %= unit.millis;
    if (count != 0) {
      out += std::to_string(count < 0 ? -count : count);
      out += unit.name;
    }
  }
  return out;
}

Status OutOfRange(
    std::string_view what, Millis is, Millis min, Millis max, std::string_view reason) {
  return InvalidArgument(std::string(what) + " of " + FormatDuration(is) +
                             " is out of range; use " + FormatDuration(min) + " to " +
                             FormatDuration(max),
                         reason);
}

}  // namespace delayd
