// tests/simulation/choices.h — where a simulated run takes its decisions from: a seed, or the bytes
// of a fuzzer.
//
// Threads: one. Cost: a few instructions. The same seed gives the same decisions on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace delayd::simulation {

class Choices {
 public:
  explicit Choices(uint64_t seed) : state_(seed) {}

  // Every decision takes bytes; when they are used up, Exhausted() and zeros.
  explicit Choices(std::string_view bytes) : bytes_(bytes), from_bytes_(true) {}

  bool Exhausted() const { return from_bytes_ && position_ >= bytes_.size(); }

  // In [0, bound).
  uint64_t Below(uint64_t bound) { return bound < 2 ? 0 : Draw(bound) % bound; }

  // In [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }

  bool OneIn(uint64_t n) { return Below(n) == 0; }

  bool Percent(uint64_t percent) { return Below(100) < percent; }

  // From 1 to 2^bits - 1, every magnitude equally likely: near and far in one stream.
  int64_t Magnitude(unsigned bits) {
    const uint64_t width = Below(bits);
    return static_cast<int64_t>((uint64_t{1} << width) + Below(uint64_t{1} << width));
  }

 private:
  uint64_t Draw(uint64_t bound) {
    if (!from_bytes_) {
      state_ += 0x9e3779b97f4a7c15;  // splitmix64
      uint64_t z = state_;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      return z ^ (z >> 31);
    }
    uint64_t value = 0;
    for (uint64_t reach = 1; reach < bound && reach != 0; reach <<= 8) {
      const uint64_t byte =
          position_ < bytes_.size() ? static_cast<unsigned char>(bytes_[position_]) : 0;
      ++position_;
      value = value << 8 | byte;
    }
    return value;
  }

  uint64_t state_ = 0;
  std::string_view bytes_;
  size_t position_ = 0;
  bool from_bytes_ = false;
};

}  // namespace delayd::simulation
