#include "cli/table.h"

#include <wchar.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/utf8.h"

namespace delayd::cli {
namespace {

constexpr std::string_view kCut = "...";  // stands for the rest of a cell

// The cell, or its beginning, in no more than `width` columns.
std::string Cut(std::string cell, size_t width) {
  if (DisplayWidth(cell) <= width) {
    return cell;
  }
  std::string_view front = cell;
  do {
    front = Utf8Front(front, front.size() - 1);
  } while (!front.empty() && DisplayWidth(front) + kCut.size() > width);
  return std::string(front) + std::string(kCut);
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t point = length == 1 ? lead : lead & (0xffU >> (length + 1));
    for (size_t j = 1; j < length && i + j < text.size(); ++j) {
      point = point << 6U | (static_cast<unsigned char>(text[i + j]) & 0x3fU);
    }
    // For a character unknown to the locale, one column is the best guess.
    const int columns = wcwidth(static_cast<wchar_t>(point));
    width += columns < 0 ? 1 : static_cast<size_t>(columns);
    i += length;
  }
  return width;
}

Table::Table(std::vector<std::string> header) : header_(std::move(header)) {
  for (const std::string& name : header_) {
    widths_.push_back(DisplayWidth(name));
  }
}

void Table::Add(std::vector<std::string> row) {
  DELAYD_CHECK(row.size() == header_.size());
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = row[i].empty() ? "-" : EscapeControls(row[i]);
    widths_[i] = std::max(widths_[i], DisplayWidth(row[i]));
  }
  rows_.push_back(std::move(row));
}

void Table::FitColumns(std::initializer_list<size_t> columns, size_t width, size_t at_least) {
  size_t line = 2 * (widths_.size() - 1);
  for (const size_t column : widths_) {
    line += column;
  }
  const auto can_give = [&](size_t column) {
    const size_t least = std::max(DisplayWidth(header_[column]), at_least);
    return widths_[column] - std::min(widths_[column], least);
  };
  for (; line > width; --line) {
    size_t widest = *columns.begin();
    for (const size_t column : columns) {
      const bool is_wider = can_give(widest) == 0 || widths_[column] > widths_[widest];
      widest = can_give(column) > 0 && is_wider ? column : widest;
    }
    if (can_give(widest) == 0) {
      break;
    }
    --widths_[widest];
  }
  for (const size_t column : columns) {
    for (std::vector<std::string>& row : rows_) {
      row[column] = Cut(std::move(row[column]), widths_[column]);
    }
  }
}

std::string Table::Line(const std::vector<std::string>& row) const {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    line += row[i];
    // No trailing spaces.
    if (i + 1 < row.size()) {
      line.append(widths_[i] - DisplayWidth(row[i]) + 2, ' ');
    }
  }
  return line;
}

void Table::Flush(Console* console) {
  if (!header_printed_) {
    console->out() << console->Bold(Line(header_)) << '\n';
    header_printed_ = true;
  }
  for (const std::vector<std::string>& row : rows_) {
    console->out() << Line(row) << '\n';
  }
  rows_.clear();
}

}  // namespace delayd::cli
