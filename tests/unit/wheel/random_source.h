// tests/unit/wheel/random_source.h — reproducible randomness for property tests.
//
// DELAYD_TEST_SCALE multiplies the number of operations; builds with sanitizers do a
// tenth.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "tests/support/seed.h"
#include "tests/support/split_mix.h"

namespace delayd::wheel {

// `count` operations in an optimised build.
inline uint64_t Scaled(uint64_t count) {
#if defined(DELAYD_SANITIZED) || !defined(__OPTIMIZE__)
  count /= 10;
#endif
  const char* scale = std::getenv("DELAYD_TEST_SCALE");  // NOLINT(concurrency-mt-unsafe)
  return scale != nullptr ? static_cast<uint64_t>(static_cast<double>(count) * std::atof(scale))
                          : count;
}

class RandomSource : public SplitMix {
 public:
  using SplitMix::SplitMix;

  // In [low, high].
  uint64_t Between(uint64_t low, uint64_t high) { return low + Next() % (high - low + 1); }

  bool OneIn(uint64_t n) { return Below(n) == 0; }

  // Any magnitude up to `bits` bits is equally likely: near and far in one stream.
  uint64_t Magnitude(unsigned bits) { return Next() >> (63 - Below(bits)); }
};

}  // namespace delayd::wheel
