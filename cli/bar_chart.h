// cli/bar_chart.h — lying bars of a text terminal, the longest as wide as there is room.
//
// Units:   widths are columns of a terminal. With UTF-8 a bar is exact to an eighth of a column.
// Errors:  none; a terminal too narrow for bars gets one column of them.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace delayd::cli {

struct Bar {
  std::string label;
  uint64_t value = 0;
  std::string text;  // the value as it is printed
};

std::string DrawBars(const std::vector<Bar>& bars, size_t width, bool utf8);

// One column a value, standing; '.' is nothing.
std::string DrawSparkline(const std::vector<uint64_t>& values, bool utf8);

}  // namespace delayd::cli
