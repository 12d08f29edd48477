#include "cli/process_name.h"

#include <unistd.h>

#include <array>

namespace delayd::cli {

std::string ProcessName() {
  std::array<char, 65> host{};  // Linux: at most 64 bytes
  if (gethostname(host.data(), host.size() - 1) != 0) {
    host[0] = '\0';
  }
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

}  // namespace delayd::cli
