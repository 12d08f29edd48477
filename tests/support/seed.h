// tests/support/seed.h — the seed of a random test: printed, and taken from DELAYD_SEED when set.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace delayd::test {

// The same for the whole run of a program.
inline uint64_t Seed() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("DELAYD_SEED");  // NOLINT(concurrency-mt-unsafe)
    const uint64_t value =
        text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
    std::printf("DELAYD_SEED=%llu\n", static_cast<unsigned long long>(value));  // NOLINT
    return value;
  }();
  return seed;
}

}  // namespace delayd::test
