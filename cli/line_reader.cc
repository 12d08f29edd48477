#include "cli/line_reader.h"

#include <algorithm>

#include "base/size_text.h"

namespace delayd::cli {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

LineReader::Source FromStream(std::istream& in) {
  return [&in](char* to, size_t bytes_max) -> StatusOr<size_t> {
    in.read(to, static_cast<std::streamsize>(bytes_max));
    if (in.bad()) {
      return InvalidArgument("the input cannot be read; check the file or pipe");
    }
    return static_cast<size_t>(in.gcount());
  };
}

}  // namespace

LineReader::LineReader(std::istream& in, size_t line_bytes_max)
    : LineReader(FromStream(in), line_bytes_max) {}

StatusOr<bool> LineReader::Fill() {
  DELAYD_ASSIGN_OR_RETURN(end_, source_(buffer_.data(), buffer_.size()));
  begin_ = 0;
  return end_ > 0;
}

StatusOr<std::optional<std::string>> LineReader::Next() {
  std::string line;
  bool any = false;
  bool complete = false;
  while (!complete) {
    if (begin_ == end_) {
      const StatusOr<bool> filled = Fill();
      if (!filled.ok()) {
        return filled.status().WithContext("line " + std::to_string(number_ + 1));
      }
      if (!*filled) {
        break;
      }
    }
    const char* from = buffer_.data() + begin_;
    const char* to = buffer_.data() + end_;
    const char* newline = std::find(from, to, '\n');
    complete = newline != to;
    const auto count = static_cast<size_t>(newline - from);
    begin_ += count + (complete ? 1 : 0);
    bytes_read_ += count + (complete ? 1 : 0);
    if (skips_rest_) {
      skips_rest_ = !complete;
      complete = false;
      continue;
    }
    any = true;
    if (line.size() + count > line_bytes_max_) {
      // Report it now, not at its end: it may never end.
      skips_rest_ = !complete;
      ++number_;
      return ResourceExhausted(
          "the line has more than " + FormatSize(line_bytes_max_) + "; is this JSON Lines?",
          "body_too_large");
    }
    line.append(from, count);
  }
  if (!any) {
    return std::optional<std::string>();
  }
  ++number_;
  if (number_ == 1 && line.starts_with(kByteOrderMark)) {
    line.erase(0, kByteOrderMark.size());
  }
  return std::optional<std::string>(std::move(line));
}

}  // namespace delayd::cli
