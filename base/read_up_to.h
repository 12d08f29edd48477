// base/read_up_to.h — reads a small file as a whole.
//
// Errors:  nullopt if read(2) failed; errno says why. A result longer than `bytes_max` means that
//          there is more.
// Threads: any. Cost: `bytes_max` of memory while it reads.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>

namespace delayd {

// Reads to the end, or one byte beyond `bytes_max`.
inline std::optional<std::string> ReadUpTo(int fd, size_t bytes_max) {
  std::string text(bytes_max + 1, '\0');
  size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < text.size(); size += static_cast<size_t>(got)) {
    got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0) {
      return std::nullopt;
    }
  }
  text.resize(size);
  return text;
}

}  // namespace delayd
