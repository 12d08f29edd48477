#include "storage/write_rest.h"

#include <algorithm>

namespace delayd::storage {
namespace {

using std::chrono::microseconds;

// RocksDB allows bytes once a millisecond.
constexpr microseconds kPauseWhileSlow{1000};
constexpr microseconds kStep{5000};

microseconds TimeFor(uint64_t bytes, uint64_t bytes_a_second) {
  return microseconds(bytes * uint64_t{1'000'000} / bytes_a_second);
}

}  // namespace

void RestBeforeTry(int tries,
                   uint64_t bytes,
                   const BytesASecond& bytes_a_second,
                   const RestStep& rest) {
  const uint64_t rate = bytes_a_second();
  if (rate == 0) {
    rest(kStep);
    return;
  }
  microseconds left = tries * (kPauseWhileSlow + TimeFor(2 * bytes, rate));
  do {
    const microseconds step = std::min(left, kStep);
    rest(step);
    left -= step;
  } while (left > microseconds(0) && bytes_a_second() != 0);
}

void WriteAllowance::RestBeforeFirstTry(Time now,
                                        const BytesASecond& bytes_a_second,
                                        const RestStep& rest) {
  while (used_until_) {
    const uint64_t rate = bytes_a_second();
    if (rate == 0) {
      used_until_.reset();
      return;
    }
    charge_ = TimeFor(last_bytes_, rate) + microseconds(1);  // rounded up
    const auto left = std::chrono::ceil<microseconds>(*used_until_ + charge_ - now);
    // Small writes are often let through in the middle of a millisecond.
    if (left <= microseconds(0) || charge_ < kPauseWhileSlow) {
      return;
    }
    const microseconds step = std::min(left, kStep);
    rest(step);
    now += step;
  }
}

void WriteAllowance::Wrote(int tries, Time begun, uint64_t bytes) {
  if (tries > 1) {
    // RocksDB reads its clock a little later than `begun`.
    used_until_ = begun + kPauseWhileSlow;
  } else if (used_until_) {
    *used_until_ += charge_;
  }
  last_bytes_ = bytes;
}

}  // namespace delayd::storage
