#include "daemon/engine/clock_watch.h"

#include <algorithm>

namespace delayd::engine {

std::string_view ClockStateName(ClockState state) {
  switch (state) {
    case ClockState::kTrusted:
      return "trusted";
    case ClockState::kBehind:
      return "behind";
    case ClockState::kHeld:
      return "held";
  }
  return "unknown";
}

ClockWatch::ClockWatch(const ClockWatchOptions& options,
                       const std::optional<ClockSeen>& last,
                       uint64_t boot_id,
                       const Now& raw)
    : options_(options), last_(raw), highest_(raw) {
  if (!last) {
    return;
  }
  // Within one boot the real time since then is known; otherwise it is at least zero.
  const bool same_boot = boot_id != 0 && last->boot_id == boot_id && last->boot <= raw.boot;
  const Millis elapsed = same_boot ? raw.boot - last->boot : Millis(0);
  last_ = {.wall = last->wall + elapsed, .boot = raw.boot};
  highest_ = {.wall = last->wall, .boot = raw.boot - elapsed};
  Trust(raw);
}

Now ClockWatch::Trust(const Now& raw) {
  const WallTime believed = last_.wall + (raw.boot - last_.boot);
  // After the clock was behind, a jump is measured from what was seen before that: the clock is put
  // right.
  const WallTime known = std::max(believed, highest_.wall + (raw.boot - highest_.boot));
  const bool far_ahead = options_.max_jump > Millis(0) && raw.wall - known > options_.max_jump;
  if (!far_ahead) {
    Follow(raw);
    return raw;
  }
  if (state_ != ClockState::kHeld) {
    Hold(believed, raw.boot);
  } else if (raw.boot >= hold_end_) {
    Follow(raw);
    return raw;
  }
  difference_ = raw.wall - believed;
  return {.wall = believed, .boot = raw.boot, .boot_rest = raw.boot_rest};
}

void ClockWatch::Accept(const Now& raw) {
  highest_ = raw;
  Follow(raw);
}

void ClockWatch::Hold(WallTime believed, BootTime boot) {
  state_ = ClockState::kHeld;
  ++suspicions_;
  last_ = {.wall = believed, .boot = boot};
  hold_end_ = boot + options_.hold_max;
}

void ClockWatch::Follow(const Now& raw) {
  last_ = raw;
  if (raw.wall >= highest_.wall) {
    highest_ = raw;
  }
  const bool behind = raw.wall < highest_.wall - kTolerance;
  suspicions_ += behind && state_ != ClockState::kBehind ? 1 : 0;
  state_ = behind ? ClockState::kBehind : ClockState::kTrusted;
  difference_ = highest_.wall - raw.wall;
}

}  // namespace delayd::engine
