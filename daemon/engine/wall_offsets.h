// daemon/engine/wall_offsets.h — which keys due jobs can have, by the offsets between the two
// clocks.
//
// What:    a relative job is due by the boot clock, but keyed by the wall clock as it stood when
//          the delay was promised. The largest and the least offset of the wall clock from the boot
//          clock at such a promise, over all relative jobs of this boot, tell which keys can be
//          due. Both are written when they change, for a restart within this boot; the first write
//          replaces those of an earlier boot.
// Units:   milliseconds.
// Threads: one owner.
// Cost:    O(1).
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/time.h"

namespace delayd::engine {

class WallOffsets {
 public:
  // As the store has them, of this boot.
  void Restore(Millis least, Millis most) {
    least_ = least;
    written_least_ = least;
    most_ = most;
    written_most_ = most;
  }

  // A relative due time is promised now.
  void Note(const Now& now) {
    const Millis offset = now.wall.time_since_epoch() - now.boot.time_since_epoch();
    most_ = std::max(most_, offset);
    least_ = std::min(least_, offset);
  }

  // No due job is keyed behind this, except jobs that were late when they came.
  WallTime LatestKey(const Now& now) const {
    return std::max(now.wall, WallTime(now.boot.time_since_epoch() + most_));
  }

  // Whatever is keyed before this is due.
  WallTime FirstKeyNotDue(const Now& now) const {
    if (least_ == Millis::max()) {
      return now.wall;
    }
    return std::min(now.wall, WallTime(now.boot.time_since_epoch() + least_));
  }

  // The most that the wall clock can have been set since a relative due time was promised: back,
  // and forward. A step too small to be shown for any job (StepOfWall) counts as none.
  std::pair<Millis, Millis> Steps(const Now& now) const {
    const Millis offset = now.wall.time_since_epoch() - now.boot.time_since_epoch();
    const auto step = [](Millis by) { return by < kHalf - kOff ? Millis(0) : by + kHalf + kOff; };
    return {step(most_ - offset), least_ == Millis::max() ? Millis(0) : step(offset - least_)};
  }

  // The value if it must be written; from here on it counts as written.
  std::optional<Millis> TakeMost() { return Take(most_, &written_most_); }

  std::optional<Millis> TakeLeast() { return Take(least_, &written_least_); }

 private:
  static std::optional<Millis> Take(Millis now, std::optional<Millis>* written) {
    return std::exchange(*written, now) == now ? std::nullopt : std::optional(now);
  }

  static constexpr Millis kHalf{500};  // of a second: steps are shown rounded to whole ones
  static constexpr Millis kOff{1};     // a relative job waits this much longer (kClockRounding)

  // Far behind every offset between the clocks, and far from overflow.
  static constexpr Millis kNone{-limits::kWallMsMax};

  Millis most_ = kNone;
  Millis least_{Millis::max()};
  std::optional<Millis> written_most_;  // none: not of this boot
  std::optional<Millis> written_least_;
};

}  // namespace delayd::engine
