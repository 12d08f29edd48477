// cli/bar_chart.h — horizontal bars for a text terminal; the longest fills the space there is.
//
// Units:   widths are terminal columns. With UTF-8 a bar is exact to an eighth of a column.
// Errors:  none; on a terminal too narrow for bars they are one column wide.
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

// Vertical bars, one column per value; '.' is zero.
std::string DrawSparkline(const std::vector<uint64_t>& values, bool utf8);

}  // namespace delayd::cli
