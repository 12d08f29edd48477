// wheel/callback_timers.h — the wheel as an in-process timer: run this function after that delay.
//
// Units:   ticks (wheel/timer.h); the owner passes the time.
// Errors:  none; for a timer that ran or was stopped the answer is false. Callbacks must not throw.
// Threads: one owner, who also runs the callbacks, from RunDue. A callback may start, stop and
//          reset any timer but its own, which is over once it runs.
// Cost:    that of the wheel, and one std::function per timer.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "wheel/timing_wheel.h"

namespace delayd::wheel {

class CallbackTimers {
 public:
  using Callback = std::function<void()>;

  explicit CallbackTimers(Tick now = 0, WheelOptions options = {})
      : wheel_(now, std::move(options)) {}

  // Returns kNoTimer and drops the callback if the options' levels do not reach that far.
  TimerHandle RunAfter(Tick now, Tick delay, Callback callback);

  // True if the callback will not run any more because of this call.
  bool Stop(TimerHandle handle);

  // Runs `delay` after `now` instead of when it would have.
  bool Reset(TimerHandle handle, Tick now, Tick delay);

  // Runs what is due, in order of due tick, and returns how many ran. Always ends, even if a
  // callback starts another without delay each time: at most as many run as there were timers at
  // the call.
  size_t RunDue(Tick now);

  Tick NextExpiration() const { return wheel_.NextExpiration(); }

  size_t size() const { return wheel_.size(); }

 private:
  TimingWheel wheel_;
  std::vector<Callback> callbacks_;  // by the id the wheel holds
  std::vector<uint64_t> free_ids_;
};

}  // namespace delayd::wheel
