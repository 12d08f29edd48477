#include "storage/write_rest.h"

#include <algorithm>

namespace delayd::storage {

void RestBeforeTry(int tries,
                   uint64_t bytes,
                   const std::function<uint64_t()>& bytes_a_second,
                   const std::function<void(std::chrono::microseconds)>& rest) {
  using std::chrono::microseconds;
  constexpr microseconds kPauseWhileSlow{1000};
  constexpr microseconds kStep{5000};
  const uint64_t rate = bytes_a_second();
  if (rate == 0) {
    rest(kStep);
    return;
  }
  microseconds left =
      tries * (kPauseWhileSlow + microseconds(2 * bytes * uint64_t{1'000'000} / rate));
  do {
    const microseconds step = std::min(left, kStep);
    rest(step);
    left -= step;
  } while (left > microseconds(0) && bytes_a_second() != 0);
}

}  // namespace delayd::storage
