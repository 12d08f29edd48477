// tests/unit/protocol/seeded.h — random bytes for round trips, from the seed of the run.
//
// Threads: one owner.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "tests/support/seed.h"

namespace delayd::protocol {

inline std::mt19937_64 SeededRandom() {
  return std::mt19937_64(test::Seed());
}

inline std::string RandomBytes(std::mt19937_64* random, size_t size_max) {
  std::string bytes((*random)() % (size_max + 1), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>((*random)());
  }
  return bytes;
}

}  // namespace delayd::protocol
