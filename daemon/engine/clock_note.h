// daemon/engine/clock_note.h — the highest wall time that was ever believed, and when it is written
// down.
//
// What:    a start relies on what was written: it tells whether the start's own clock is behind,
//          and how long the store was not in use. So it is written along with other changes, and by
//          itself while a job waits and nothing else is written.
// Units:   base/time.h.
// Threads: one owner; reads no clock itself.
// Cost:    a few comparisons.
#pragma once

#include <algorithm>
#include <optional>

#include "base/time.h"

namespace delayd::engine {

class ClockNote {
 public:
  explicit ClockNote(const Now& now) : highest_(now.wall), noted_at_(now.boot) {}

  // As the store has it.
  void Restore(WallTime highest) { highest_ = std::max(highest_, highest); }

  // Called with every reading of the clocks.
  void See(const Now& now) { highest_ = std::max(highest_, now.wall); }

  // The wall clock is right as it is now, whatever was seen before.
  void Accept(const Now& now) { highest_ = now.wall; }

  WallTime highest() const { return highest_; }

  // It is written down, now.
  void Noted(BootTime now) {
    noted_at_ = now;
    noted_ = highest_;
  }

  // Whether what this run has written last is off by this much, or this old, or nothing was written
  // yet.
  bool IsOff(Millis by, BootTime now) const {
    return !noted_ || highest_ - *noted_ >= by || now - noted_at_ >= by;
  }

  // How long until it is `age` old.
  Millis UntilAge(Millis age, BootTime now) const {
    return std::max(noted_at_ + age - now, Millis(0));
  }

 private:
  WallTime highest_;
  BootTime noted_at_;              // or when the run began
  std::optional<WallTime> noted_;  // in this run
};

}  // namespace delayd::engine
