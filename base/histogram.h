// base/histogram.h — counts how often a value fell into each of a few fixed ranges.
//
// Units:   whole numbers of whatever the owner counts; bounds are inclusive upper ends, ascending.
// Errors:  none; more than kBoundsMax bounds are a failed check.
// Threads: a value with one owner.
// Cost:    a few comparisons per observation, no allocation.
// Source:  Prometheus' cumulative histogram, before the counts are summed up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"

namespace delayd {

class Histogram {
 public:
  static constexpr size_t kBoundsMax = 24;

  Histogram() = default;

  // `bounds` must have static storage.
  explicit Histogram(std::span<const uint64_t> bounds) : bounds_(bounds) {
    DELAYD_CHECK(bounds.size() <= kBoundsMax);
  }

  void Observe(uint64_t value) {
    size_t range = 0;
    while (range < bounds_.size() && value > bounds_[range]) {
      ++range;
    }
    ++counts_[range];
    ++count_;
    sum_ += value;
  }

  std::span<const uint64_t> bounds() const { return bounds_; }

  // The number of observations up to bounds()[range] and above the bound before it; for range ==
  // bounds().size(), those above all bounds.
  uint64_t count_in(size_t range) const { return counts_[range]; }

  uint64_t count() const { return count_; }

  uint64_t sum() const { return sum_; }

 private:
  std::span<const uint64_t> bounds_;
  std::array<uint64_t, kBoundsMax + 1> counts_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace delayd
