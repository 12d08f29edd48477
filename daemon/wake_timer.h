// daemon/wake_timer.h — sleeps until a deadline, and wakes when the wall clock is set.
//
// What:    the deadline is on CLOCK_BOOTTIME, so that it matches the engine's clock to the
//          microsecond and keeps counting through a suspend. A second timer, on CLOCK_REALTIME,
//          never expires; the kernel cancels it when the wall clock is set.
// Units:   microseconds of the boot clock.
// Errors:  a kernel without timerfd is a failed check.
// Threads: the core thread.
// Cost:    one system call when the deadline moves nearer by more than 10 microseconds. When it
//          moves away, as it does with every commit, the timer is left alone: the turn that it
//          wakes too early sets the next deadline.
// Source:  timerfd_create(2), TFD_TIMER_CANCEL_ON_SET.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/time.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace delayd {

class WakeTimer {
 public:
  // `clock_set` runs as a handler of `io` each time the wall clock is set. The deadline itself
  // calls nothing: it ends the wait, and the turn finds out what is due.
  WakeTimer(boost::asio::io_context* io, std::function<void()> clock_set);
  ~WakeTimer();
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;

  // None: sleep until something else happens. The wait may end before the deadline.
  void SetDeadline(std::optional<BootMicros> deadline);

 private:
  struct Timers;
  std::unique_ptr<Timers> timers_;
};

}  // namespace delayd
