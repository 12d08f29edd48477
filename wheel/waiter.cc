// Both waiters remember the earliest arrival since the owner last looked; so no wake-up can be
// lost.
#include "wheel/waiter.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

#include <sys/timerfd.h>

namespace delayd::wheel {

namespace {

// A later time than this (292 years after the clock's zero) cannot be waited for; it counts as
// never.
constexpr uint64_t kNanosecondsMax = INT64_MAX;

bool Reachable(Tick due, uint64_t tick_ns) {
  return due <= kNanosecondsMax / tick_ns;
}

}  // namespace

WakeReason ConditionWaiter::WaitUntil(Tick due) {
  std::unique_lock lock(mutex_);
  waiting_for_ = due;
  const auto earlier = [&] { return earliest_ < due; };
  bool arrival = true;
  if (Reachable(due, tick_ns_)) {
    const std::chrono::nanoseconds since_zero(static_cast<int64_t>(due * tick_ns_));
    arrival = arrived_.wait_until(lock, std::chrono::steady_clock::time_point(since_zero), earlier);
  } else {
    arrived_.wait(lock, earlier);
  }
  waiting_for_ = 0;
  earliest_ = kNever;
  return arrival ? WakeReason::kArrival : WakeReason::kDue;
}

void ConditionWaiter::Arrive(Tick due) {
  const std::lock_guard lock(mutex_);
  earliest_ = std::min(earliest_, due);
  if (earliest_ < waiting_for_) {
    arrived_.notify_one();
  }
}

TimerFdWaiter::TimerFdWaiter(clockid_t clock, uint64_t tick_ns)
    : tick_ns_(tick_ns), fd_(::timerfd_create(clock, TFD_NONBLOCK | TFD_CLOEXEC)) {
  DELAYD_CHECK(fd_ >= 0);
}

TimerFdWaiter::~TimerFdWaiter() {
  ::close(fd_);
}

// An absolute time that has passed makes the descriptor readable at once; the zero time would
// disarm it, so tick 0 is the clock's first nanosecond.
void TimerFdWaiter::SetTimer(Tick due) {
  itimerspec when = {};
  if (Reachable(due, tick_ns_)) {
    constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;
    const uint64_t since_zero = std::max<uint64_t>(due * tick_ns_, 1);
    when.it_value.tv_sec = static_cast<time_t>(since_zero / kNanosecondsPerSecond);
    when.it_value.tv_nsec = static_cast<int64_t>(since_zero % kNanosecondsPerSecond);
  }
  DELAYD_CHECK(::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &when, nullptr) == 0);
  armed_ = due;
}

void TimerFdWaiter::BeginTurn() {
  const std::lock_guard lock(mutex_);
  SetTimer(kNever);  // disarmed; this also clears a readiness that nobody has read
  in_turn_ = true;
  earliest_ = kNever;
}

void TimerFdWaiter::Arm(Tick due) {
  const std::lock_guard lock(mutex_);
  in_turn_ = false;
  // An arrival during the turn wakes the owner now: it has not been filed yet.
  SetTimer(earliest_ < due ? 0 : due);
}

void TimerFdWaiter::Arrive(Tick due) {
  const std::lock_guard lock(mutex_);
  earliest_ = std::min(earliest_, due);
  // During a turn nothing is needed: the owner will arm for it. Otherwise only an earlier arrival
  // matters. It wakes the owner now, because only the owner can file it and then arm for its due
  // tick.
  if (!in_turn_ && due < armed_) {
    SetTimer(0);
  }
}

WakeReason TimerFdWaiter::WaitUntil(Tick due) {
  Arm(due);
  pollfd readable = {.fd = fd_, .events = POLLIN, .revents = 0};
  while (::poll(&readable, 1, -1) < 0) {
    DELAYD_CHECK(errno == EINTR);
  }
  const bool arrival = [&] {
    const std::lock_guard lock(mutex_);
    return earliest_ < due;
  }();
  BeginTurn();
  return arrival ? WakeReason::kArrival : WakeReason::kDue;
}

}  // namespace delayd::wheel
