// tests/unit/protocol/seeded.h — a random source that says its seed and takes DELAYD_SEED.
//
// Threads: one owner.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

namespace delayd::protocol {

inline std::mt19937_64 SeededRandom() {
  const char* given = std::getenv("DELAYD_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "DELAYD_SEED=" << seed << "\n";
  return std::mt19937_64(seed);
}

inline std::string RandomBytes(std::mt19937_64* random, size_t size_max) {
  std::string bytes((*random)() % (size_max + 1), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>((*random)());
  }
  return bytes;
}

}  // namespace delayd::protocol
