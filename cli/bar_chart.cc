#include "cli/bar_chart.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/table.h"

namespace delayd::cli {
namespace {

constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

// A value above zero is always drawn as something.
std::string DrawBar(uint64_t value, uint64_t largest, size_t width, bool utf8) {
  if (value == 0 || largest == 0) {
    return "";
  }
  const double share = static_cast<double>(value) / static_cast<double>(largest);
  const auto eighths =
      std::max<size_t>(1, static_cast<size_t>(share * static_cast<double>(width * 8) + 0.5));
  if (!utf8) {
    std::string bar;
    bar.assign(std::max<size_t>(1, eighths / 8), '#');
    return bar;
  }
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) {
    bar += "█";
  }
  return bar.append(kEighths[eighths % 8]);
}

}  // namespace

std::string DrawBars(const std::vector<Bar>& bars, size_t width, bool utf8) {
  size_t label_width = 0;
  size_t text_width = 0;
  uint64_t largest = 0;
  for (const Bar& bar : bars) {
    label_width = std::max(label_width, DisplayWidth(bar.label));
    text_width = std::max(text_width, DisplayWidth(bar.text));
    largest = std::max(largest, bar.value);
  }
  // Two gaps of two columns, and the last column, at which some terminals wrap.
  const size_t taken = label_width + text_width + 5;
  const size_t room = width > taken ? width - taken : 1;
  std::string out;
  for (const Bar& bar : bars) {
    out += bar.label + std::string(label_width - DisplayWidth(bar.label) + 2, ' ');
    out += std::string(text_width - DisplayWidth(bar.text), ' ') + bar.text;
    const std::string drawn = DrawBar(bar.value, largest, room, utf8);
    out += (drawn.empty() ? "" : "  " + drawn) + "\n";
  }
  return out;
}

std::string DrawSparkline(const std::vector<uint64_t>& values, bool utf8) {
  constexpr std::array<std::string_view, 9> kBlocks = {".", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 9> kAscii = {".", "_", "_", "-", "-", "=", "=", "#", "#"};
  const uint64_t largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string out;
  for (const uint64_t value : values) {
    size_t height = 0;
    if (value > 0) {
      height =
          1 + static_cast<size_t>(static_cast<double>(value) / static_cast<double>(largest) * 7);
    }
    out += (utf8 ? kBlocks : kAscii)[height];
  }
  return out;
}

}  // namespace delayd::cli
