// tests/bench/load/open_loop.h — puts at a fixed rate, whether the server keeps up or not.
//
// What:    a put's latency counts from when it was due to be sent, so that a server that stalls is
// charged for all
//          that should have come meanwhile. Up to 200 us late is the tool's own waking up, and
//          counts from the sending.
// Units:   microseconds of the steady clock.
#pragma once

#include <cstdint>

namespace delayd::load {

class OpenLoop {
 public:
  OpenLoop(double rate, int64_t begin_us) : gap_us_(1e6 / rate), begin_us_(begin_us) {}

  // When the next put is due.
  int64_t next_us() const {
    return begin_us_ + static_cast<int64_t>(static_cast<double>(count_) * gap_us_);
  }

  bool Due(int64_t now_us) const { return now_us >= next_us(); }

  // Sent at `now_us`; returns from when its latency counts.
  int64_t Sent(int64_t now_us) {
    constexpr int64_t kWakeUpMicros = 200;
    const int64_t due = next_us();
    ++count_;
    return now_us - due <= kWakeUpMicros ? now_us : due;
  }

  uint64_t count() const { return count_; }

 private:
  double gap_us_;
  int64_t begin_us_;
  uint64_t count_ = 0;
};

}  // namespace delayd::load
