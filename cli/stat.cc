#include "cli/stat.h"

#include <algorithm>

namespace delayd::cli {
namespace {

template <typename T>
std::optional<T> ValueOf(const std::vector<protocol::Stat>& stats, std::string_view name) {
  const auto found = std::ranges::find(stats, name, &protocol::Stat::name);
  const T* value = found == stats.end() ? nullptr : std::get_if<T>(&found->value);
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

}  // namespace

std::optional<uint64_t> StatNumber(const std::vector<protocol::Stat>& stats,
                                   std::string_view name) {
  return ValueOf<uint64_t>(stats, name);
}

std::optional<std::string> StatText(const std::vector<protocol::Stat>& stats,
                                    std::string_view name) {
  return ValueOf<std::string>(stats, name);
}

}  // namespace delayd::cli
