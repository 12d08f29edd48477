// cli/table.h — columns for people: as wide as their widest cell, two spaces apart.
//
// What:    rows may come in pages; a column never gets narrower from one page to the next.
// Units:   widths are columns of a terminal, not bytes.
// Threads: one owner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"

namespace delayd::cli {

// Columns a terminal needs for this UTF-8 text.
size_t DisplayWidth(std::string_view text);

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  // Cells are escaped, so that a key cannot move the cursor.
  void Add(std::vector<std::string> row);
  // Prints what was added since the last time, the header before the first.
  void Flush(Console* console);

 private:
  std::string Line(const std::vector<std::string>& row) const;

  std::vector<std::string> header_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
  bool header_printed_ = false;
};

}  // namespace delayd::cli
