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

std::map<std::string, double, std::less<>> FiguresByQueue(std::string_view page,
                                                          std::string_view name) {
  // A queue's name has no character that the page escapes.
  const std::string head = "\n" + std::string(name) + "{queue=\"";
  constexpr std::string_view kBehind = "\"} ";
  std::map<std::string, double, std::less<>> figures;
  for (size_t at = page.find(head); at != std::string_view::npos; at = page.find(head, at)) {
    at += head.size();
    const size_t end = page.find(kBehind, at);
    double figure = 0;
    if (end != std::string_view::npos &&
        std::from_chars(page.data() + end + kBehind.size(), page.data() + page.size(), figure).ec ==
            std::errc()) {
      figures.emplace(page.substr(at, end - at), figure);
    }
  }
  return figures;
}

}  // namespace delayd::cli
