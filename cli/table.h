// cli/table.h — a table for people: columns as wide as their widest cell, two spaces apart.
//
// What:    rows may come in pages; a column never gets narrower from one page to the next, unless
//          it is shortened.
// Units:   widths are terminal columns, not bytes.
// Threads: one owner.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"

namespace delayd::cli {

// How many terminal columns this UTF-8 text takes.
size_t DisplayWidth(std::string_view text);

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  // Cells are escaped, so that a key cannot move the cursor.
  void Add(std::vector<std::string> row);
  // Shortens the cells of these columns, the widest first, so that a line of the rows added since
  // the last Flush fits `width` terminal columns; but no column below `at_least` or what its name
  // takes.
  void FitColumns(std::initializer_list<size_t> columns, size_t width, size_t at_least = 0);
  // Prints the rows added since the last Flush; the first Flush prints the header too.
  void Flush(Console* console);

 private:
  std::string Line(const std::vector<std::string>& row) const;

  std::vector<std::string> header_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
  bool header_printed_ = false;
};

}  // namespace delayd::cli
