#include "base/clock.h"

#include <time.h>

#include <cstdio>

#include "base/check.h"

namespace delayd {
namespace {

struct Reading {
  Millis whole;
  Micros rest;
};

Reading ReadClock(clockid_t id) {
  timespec ts{};
  DELAYD_CHECK(clock_gettime(id, &ts) == 0);
  const int64_t micros = int64_t{ts.tv_nsec} / 1000;
  return {.whole = Millis(int64_t{ts.tv_sec} * 1000 + micros / 1000),
          .rest = Micros(micros % 1000)};
}

}  // namespace

Now SystemClock::Sample() const {
  const Reading wall = ReadClock(CLOCK_REALTIME);
  const Reading boot = ReadClock(CLOCK_BOOTTIME);
  return {.wall = WallTime(wall.whole),
          .boot = BootTime(boot.whole),
          .wall_rest = wall.rest,
          .boot_rest = boot.rest};
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
