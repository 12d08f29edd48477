#include "base/size_text.h"

#include <array>
#include <string_view>
#include <utility>

namespace delayd {

std::string FormatSize(uint64_t bytes) {
  static constexpr std::array<std::pair<std::string_view, int>, 5> kUnits = {
      {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}};
  for (const auto& [name, shift] : kUnits) {
    const uint64_t whole = bytes >> shift;
    if (whole != 0 && (whole << shift) == bytes) {
      return std::to_string(whole) + std::string(name);
    }
  }
  return "0B";
}

}  // namespace delayd
