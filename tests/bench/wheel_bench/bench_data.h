// tests/bench/wheel_bench/bench_data.h — the same random load for every structure.
//
// Units: ticks are milliseconds. Threads: one. Errors: none.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/support/split_mix.h"

namespace delayd::bench {

using Tick = uint64_t;

// 20 minutes before a power of two, so that the rollover of a coarse level falls into every run.
constexpr Tick kStart = (Tick{1} << 40) - 20 * 60'000;

constexpr Tick kHour = 3'600'000;

enum class Mix : uint8_t {
  kUniform,      // 1 ms to 1 h
  kExponential,  // mean 30 min
  kFar,          // 6 h to 24 h
};

class Random : public SplitMix {
 public:
  using SplitMix::SplitMix;

  // In [0, bound), bound below 2^32, without a division.
  uint32_t Below(uint64_t bound) { return static_cast<uint32_t>(((Next() >> 32) * bound) >> 32); }
};

inline uint32_t DrawDelay(Random& random, Mix mix) {
  switch (mix) {
    case Mix::kUniform:
      return 1 + random.Below(kHour);
    case Mix::kExponential: {
      const double uniform = (static_cast<double>(random.Below(1 << 30)) + 1) / (1 << 30);
      return 1 + static_cast<uint32_t>(-std::log(uniform) * static_cast<double>(kHour / 2));
    }
    case Mix::kFar:
      return static_cast<uint32_t>(6 * kHour) + random.Below(18 * kHour);
  }
  return 1;
}

inline std::vector<uint32_t> Delays(size_t count, Mix mix, uint64_t seed) {
  Random random(seed);
  std::vector<uint32_t> delays(count);
  for (uint32_t& delay : delays) {
    delay = DrawDelay(random, mix);
  }
  return delays;
}

inline std::vector<uint32_t> Permutation(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<uint32_t> order(count);
  for (size_t i = 0; i < count; ++i) {
    order[i] = static_cast<uint32_t>(i);
  }
  for (size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[random.Below(i)]);
  }
  return order;
}

}  // namespace delayd::bench
