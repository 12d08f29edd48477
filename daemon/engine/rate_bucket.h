// daemon/engine/rate_bucket.h — a token bucket that counts exactly, in whole numbers.
//
// What:    gains cap.count tokens each cap.per, holds at most cap.burst (and the remainder of the
//          last millisecond), and begins full. Another cap keeps the tokens that are there.
// Units:   the level gains `count` a millisecond, and a token takes `per` of it. Nothing is ever
//          rounded, except that a part of a token is rounded down when `per` changes.
// Threads: one owner. Cost: O(1), a few instructions.
// Source:  the token bucket of traffic shaping.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "daemon/engine/queue_settings.h"

namespace delayd::engine {

class RateBucket {
 public:
  void SetCap(const RateCap& cap, BootTime now) {
    if (cap == cap_) {
      return;
    }
    const bool begins = cap_.count == 0;
    const uint64_t old_token = Token();
    const uint64_t old_level = begins ? 0 : LevelAt(now);
    cap_ = cap;
    // A full bucket at each change would give a burst to whoever reloads the configuration.
    level_ = begins ? Capacity() : std::min(Capacity(), Scaled(old_level, old_token));
    filled_at_ = now;
  }

  bool MayTake(BootTime now) const { return cap_.count == 0 || LevelAt(now) >= Token(); }

  bool IsFull(BootTime now) const { return cap_.count == 0 || LevelAt(now) == Capacity(); }

  // Only when MayTake.
  void Take(BootTime now) {
    if (cap_.count != 0) {
      level_ = LevelAt(now) - Token();
      filled_at_ = now;
    }
  }

  // The first moment at which MayTake.
  BootTime NextTake(BootTime now) const {
    if (MayTake(now)) {
      return now;
    }
    const uint64_t missing = Token() - LevelAt(now);
    return now + Millis(static_cast<int64_t>((missing + cap_.count - 1) / cap_.count));
  }

 private:
  uint64_t Token() const { return static_cast<uint64_t>(cap_.per.count()); }

  // The clock counts whole milliseconds. What remains of the one that completes a token is kept:
  // without that, 700/s gave 500, and no rate gave more than one token a millisecond.
  uint64_t Capacity() const {
    return std::max(Token() * std::max<uint32_t>(cap_.burst, 1),
                    Token() + std::max<uint32_t>(cap_.count, 1) - 1);
  }

  // In two parts, so that no product is greater than a capacity or the square of a token.
  uint64_t Scaled(uint64_t level, uint64_t token) const {
    return level / token * Token() + level % token * Token() / token;
  }

  uint64_t LevelAt(BootTime now) const {
    const uint64_t passed = static_cast<uint64_t>((now - filled_at_).count());
    const uint64_t until_full = (Capacity() - level_) / cap_.count + 1;
    return passed >= until_full ? Capacity() : std::min(Capacity(), level_ + passed * cap_.count);
  }

  RateCap cap_;
  uint64_t level_ = 0;
  BootTime filled_at_;
};

}  // namespace delayd::engine
