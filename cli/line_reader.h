// cli/line_reader.h — lines of a stream, counted, of bounded length.
//
// Errors:  kResourceExhausted "body_too_large" for a line beyond the bound; it is skipped, and
// reading can go on. kDataLoss when the stream fails.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/status.h"

namespace delayd::cli {

// The largest payload in base64, with room for the other members.
inline constexpr size_t kLineBytesMax = limits::kPayloadBytesHardMax / 3 * 4 + (size_t{1} << 20);

class LineReader {
 public:
  explicit LineReader(std::istream& in, size_t line_bytes_max = kLineBytesMax)
      : in_(in), line_bytes_max_(line_bytes_max) {}

  // The next line without its end; nothing at the end. A byte order mark is dropped.
  StatusOr<std::optional<std::string>> Next();

  // Of the line that was given last, counted from 1.
  uint64_t number() const { return number_; }

  uint64_t bytes_read() const { return bytes_read_; }

 private:
  bool Fill();

  std::istream& in_;
  size_t line_bytes_max_;
  std::vector<char> buffer_ = std::vector<char>(size_t{256} * 1024);
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t number_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace delayd::cli
