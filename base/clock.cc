#include "base/clock.h"

#include <time.h>

#include <cstdio>
#include <fstream>

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

// By how much the boot clock of this time namespace is off from the kernel's own, in ns modulo
// 2^64; 0 outside of any, and on a kernel without them.
uint64_t BootClockOffset(const std::string& path) {
  std::ifstream file(path);
  std::string clock;
  int64_t seconds = 0;
  int64_t nanos = 0;
  while (file >> clock >> seconds >> nanos) {
    if (clock == "boottime") {
      return static_cast<uint64_t>(seconds) * 1'000'000'000 + static_cast<uint64_t>(nanos);
    }
  }
  return 0;
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

uint64_t CurrentBootId(const std::string& boot_id_path, const std::string& offsets_path) {
  std::FILE* file = std::fopen(boot_id_path.c_str(), "re");
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
  constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;  // odd: no two offsets give the same number
  return id ^ BootClockOffset(offsets_path) * kSpread;
}

}  // namespace delayd
