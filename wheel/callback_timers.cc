// Callbacks are stored beside the wheel, so that a timer without one pays nothing for them.
#include "wheel/callback_timers.h"

#include <utility>

namespace delayd::wheel {

namespace {

Tick Later(Tick now, Tick delay) {
  return delay > kNever - now ? kNever : now + delay;
}

}  // namespace

TimerHandle CallbackTimers::RunAfter(Tick now, Tick delay, Callback callback) {
  if (free_ids_.empty()) {
    free_ids_.push_back(callbacks_.size());
    callbacks_.emplace_back();
  }
  const uint64_t id = free_ids_.back();
  const TimerHandle handle = wheel_.Add(Later(now, delay), id);
  if (handle != kNoTimer) {
    free_ids_.pop_back();
    callbacks_[id] = std::move(callback);
  }
  return handle;
}

bool CallbackTimers::Stop(TimerHandle handle) {
  const auto id = wheel_.Id(handle);
  if (!id) {
    return false;
  }
  wheel_.Cancel(handle);
  callbacks_[*id] = nullptr;
  free_ids_.push_back(*id);
  return true;
}

bool CallbackTimers::Reset(TimerHandle handle, Tick now, Tick delay) {
  return wheel_.Move(handle, Later(now, delay));
}

size_t CallbackTimers::RunDue(Tick now) {
  // One at a time: a callback may stop the timer that is due next.
  const size_t limit = wheel_.size();
  size_t ran = 0;
  Expired due;
  while (ran < limit && wheel_.PopDue(now, {&due, 1}) == 1) {
    const Callback callback = std::exchange(callbacks_[due.id], nullptr);
    free_ids_.push_back(due.id);
    ++ran;
    callback();
  }
  return ran;
}

}  // namespace delayd::wheel
