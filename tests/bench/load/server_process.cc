#include "tests/bench/load/server_process.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace delayd::load {

double CpuSeconds(int64_t pid) {
  if (pid == 0) {
    return 0;
  }
  const std::string process = "/proc/" + std::to_string(pid);
  std::ifstream stat(process + "/stat");
  std::string line;
  std::getline(stat, line);
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string skipped;
  for (int field = 3; field <= 13; ++field) {
    fields >> skipped;
  }
  double ticks = 0;
  for (int field = 14; field <= 17; ++field) {  // own and waited-for, user and system
    double part = 0;
    fields >> part;
    ticks += part;
  }
  double seconds = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream children(process + "/task/" + std::to_string(pid) + "/children");
  for (int64_t child = 0; children >> child;) {
    seconds += CpuSeconds(child);
  }
  return seconds;
}

int64_t ResidentKib(int64_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) {
      return std::stoll(line.substr(6));
    }
  }
  return 0;
}

void WaitForRest(int64_t pid) {
  constexpr int kLooksMax = 240;
  constexpr useconds_t kLookMicros = 500'000;
  constexpr double kRestSeconds = 0.02;
  double before = CpuSeconds(pid);
  for (int look = 0; look < kLooksMax; ++look) {
    ::usleep(kLookMicros);
    const double now = CpuSeconds(pid);
    if (now - before <= kRestSeconds) {
      return;
    }
    before = now;
  }
}

}  // namespace delayd::load
