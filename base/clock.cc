#include "base/clock.h"

#include <time.h>

#include <cstdio>

#include "base/check.h"

namespace delayd {
namespace {

Millis ReadClock(clockid_t id) {
  timespec ts{};
  DELAYD_CHECK(clock_gettime(id, &ts) == 0);
  return Millis(int64_t{ts.tv_sec} * 1000 + int64_t{ts.tv_nsec} / 1'000'000);
}

}  // namespace

Now SystemClock::Sample() const {
  return {.wall = WallTime(ReadClock(CLOCK_REALTIME)), .boot = BootTime(ReadClock(CLOCK_BOOTTIME))};
}

uint64_t CurrentBootId() {
  std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == nullptr) {
    return 0;
  }
  uint64_t id = 0;
  int digits = 0;
  for (int c = std::fgetc(file); c != EOF && digits < 16; c = std::fgetc(file)) {
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value >= 0) {
      id = id << 4 | static_cast<uint64_t>(value);
      ++digits;
    }
  }
  std::fclose(file);
  return id;
}

}  // namespace delayd
