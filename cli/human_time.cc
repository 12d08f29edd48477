#include "cli/human_time.h"

#include <array>
#include <string_view>

#include "cli/shell_word.h"

namespace delayd::cli {
namespace {

struct Unit {
  std::string_view name;
  int64_t millis;
};

constexpr std::array<Unit, 4> kUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}}};

}  // namespace

std::string RoughDuration(Millis duration) {
  int64_t rest = duration.count() < 0 ? -duration.count() : duration.count();
  const std::string sign = duration.count() < 0 ? "-" : "";
  if (rest < 1000) {
    return sign + std::to_string(rest) + "ms";
  }
  size_t largest = 0;
  while (rest < kUnits[largest].millis) {
    ++largest;
  }
  // Rounded to the second unit, so that what was given as 2h does not read 1h 59m.
  const int64_t precision = largest + 1 < kUnits.size() ? kUnits[largest + 1].millis : 1000;
  rest = (rest + precision / 2) / precision * precision;
  std::string out;
  for (const Unit& unit : kUnits) {
    const int64_t count = rest / unit.millis;
    rest %= unit.millis;
    if (count != 0) {
      out += (out.empty() ? "" : " ") + std::to_string(count) + std::string(unit.name);
    }
  }
  return sign + out;
}

std::string FromNow(WallTime time, WallTime now) {
  if (time == now) {
    return "now";
  }
  return time > now ? "in " + RoughDuration(time - now) : RoughDuration(now - time) + " ago";
}

std::string DueFromNow(WallTime due, WallTime now) {
  return (due < now ? "was due " : "is due ") + FromNow(due, now);
}

std::string Jobs(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " job" : " jobs");
}

std::string_view WasOrWere(uint64_t count) {
  return count == 1 ? "was" : "were";
}

std::string PausedQueue(std::string_view queue, uint64_t ready, std::optional<Millis> left) {
  return "queue " + std::string(queue) + " is paused" +
         (left.has_value() ? " for another " + RoughDuration(*left) : "") + ", with " +
         Jobs(ready) + " ready; resume it with: delayctl resume " + ShellWord(queue);
}

std::string DamagedQueue(std::string_view queue, uint64_t damaged) {
  return "damaged records keep " + Jobs(damaged) + " of queue " + std::string(queue) +
         " from being handed out; run 'delayctl verify', which names such jobs, and restore a "
         "backup";
}

std::string FirstOf(const std::set<std::string>& names) {
  constexpr size_t kMost = 10;
  std::string text;
  size_t count = 0;
  for (const std::string& name : names) {
    if (count++ == kMost) {
      return text + " and " + std::to_string(names.size() - kMost) + " more";
    }
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace delayd::cli
