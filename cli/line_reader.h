// cli/line_reader.h — reads and counts lines of bounded length from a stream or another source.
//
// Errors:  kResourceExhausted "body_too_large" for a line beyond the bound; it is skipped, and
// reading can go on. kInvalidArgument when the stream fails; the source's own errors.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/status.h"

namespace delayd::cli {

// The largest payload as an export may write it, each byte as \u0000, with room for the other
// members.
inline constexpr size_t kLineBytesMax = limits::kPayloadBytesHardMax * 6 + (size_t{1} << 20);

class LineReader {
 public:
  // Gives what is available, at most `bytes_max` bytes; 0 at the end.
  using Source = std::function<StatusOr<size_t>(char* to, size_t bytes_max)>;

  explicit LineReader(Source source, size_t line_bytes_max = kLineBytesMax)
      : source_(std::move(source)), line_bytes_max_(line_bytes_max) {}

  explicit LineReader(std::istream& in, size_t line_bytes_max = kLineBytesMax);

  // The next line without its line end; none at the end. A byte order mark is dropped.
  StatusOr<std::optional<std::string>> Next();

  // The number of the last line returned, counted from 1.
  uint64_t number() const { return number_; }

  uint64_t bytes_read() const { return bytes_read_; }

 private:
  // False at the end.
  StatusOr<bool> Fill();

  Source source_;
  size_t line_bytes_max_;
  std::vector<char> buffer_ = std::vector<char>(size_t{256} * 1024);
  size_t begin_ = 0;
  size_t end_ = 0;
  bool skips_rest_ = false;  // of a line that was too long
  uint64_t number_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace delayd::cli
