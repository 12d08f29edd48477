// wheel/waiter.h — how the owner of a wheel or delay queue sleeps until its head is due.
//
// Units:   ticks of `tick_ns` nanoseconds (a millisecond by default), counted from the zero of the
//          clock that is slept on. A wait never ends before its tick has begun.
// Errors:  a clock the kernel does not know, or no file descriptor left, is a DELAYD_CHECK.
// Threads: one owner waits; any thread may call Arrive or Wake at any time.
// Cost:    one system call to sleep; Arrive costs one only if the owner has to be woken. No
//          polling.
//
// The owner's turn:                                 Any other thread:
//   for (;;) {                                        hand the timer to the owner's inbox;
//     take what is in the inbox, PopDue, ...          waiter.Arrive(due);
//     waiter.WaitUntil(wheel.NextExpiration());
//   }
//
// No wake-up is lost: an Arrive that comes after the owner has looked into its inbox and before it
// sleeps is remembered. The wait then ends at once if that arrival is earlier than what the owner
// waits for.
#pragma once

#include <time.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "wheel/timer.h"

namespace delayd::wheel {

enum class WakeReason : uint8_t {
  kDue,      // the tick waited for has begun
  kArrival,  // something earlier arrived, or Wake was called
};

constexpr uint64_t kNanosecondsPerMillisecond = 1'000'000;

// Sleeps on a condition variable and the steady clock: for an owner that does nothing but this.
class ConditionWaiter {
 public:
  explicit ConditionWaiter(uint64_t tick_ns = kNanosecondsPerMillisecond) : tick_ns_(tick_ns) {}

  // Sleeps until tick `due` begins or something earlier arrives. All arrivals before it returns
  // count as handled.
  WakeReason WaitUntil(Tick due);

  // Something with due tick `due` was handed over.
  void Arrive(Tick due);

  // Ends the current wait, or the next one.
  void Wake() { Arrive(0); }

 private:
  const uint64_t tick_ns_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  Tick waiting_for_ = 0;    // 0: the owner is awake
  Tick earliest_ = kNever;  // of the arrivals since the last wait
};

// A timerfd, for an owner that also sleeps on other things in epoll or an event loop. The
// descriptor becomes readable when it is time for a turn.
class TimerFdWaiter {
 public:
  // `clock`: CLOCK_MONOTONIC, CLOCK_BOOTTIME (counts suspended time) or CLOCK_REALTIME (follows
  // steps).
  explicit TimerFdWaiter(clockid_t clock = CLOCK_MONOTONIC,
                         uint64_t tick_ns = kNanosecondsPerMillisecond);
  ~TimerFdWaiter();
  TimerFdWaiter(const TimerFdWaiter&) = delete;
  TimerFdWaiter& operator=(const TimerFdWaiter&) = delete;

  int fd() const { return fd_; }

  // Call it at the start of the owner's turn, before looking into the inbox: arrivals until now
  // count as handled.
  void BeginTurn();

  // Call it at the end of the turn: the descriptor becomes readable once tick `due` begins, or if
  // something earlier arrives or has arrived since BeginTurn.
  void Arm(Tick due);

  void Arrive(Tick due);

  void Wake() { Arrive(0); }

  // Arm, sleep, BeginTurn: for an owner without an event loop.
  WakeReason WaitUntil(Tick due);

 private:
  void SetTimer(Tick due);

  const uint64_t tick_ns_;
  int fd_;
  std::mutex mutex_;
  bool in_turn_ = true;
  Tick armed_ = kNever;
  Tick earliest_ = kNever;
};

}  // namespace delayd::wheel
