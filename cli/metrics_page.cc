#include "cli/metrics_page.h"

#include <charconv>
#include <string>

namespace delayd::cli {

std::optional<double> Figure(std::string_view page, std::string_view name) {
  const std::string line = "\n" + std::string(name) + " ";
  const size_t found = page.find(line);
  double figure = 0;
  const char* end = page.data() + page.size();
  if (found == std::string_view::npos ||
      std::from_chars(page.data() + found + line.size(), end, figure).ec != std::errc()) {
    return std::nullopt;
  }
  return figure;
}

}  // namespace delayd::cli
