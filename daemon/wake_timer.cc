#include "daemon/wake_timer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/check.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/timerfd.h>

namespace delayd {

namespace {

namespace asio = boost::asio;

// Converting a wall-clock due time is a little off each time, since two clocks are read.
constexpr Micros kSlack{10};

itimerspec At(Micros time) {
  itimerspec spec{};
  // All zeros would disarm the timer.
  spec.it_value.tv_sec = time.count() / 1'000'000;
  spec.it_value.tv_nsec = std::max<int64_t>(time.count() % 1'000'000 * 1000, 1);
  return spec;
}

int NewTimer(int clock) {
  const int fd = ::timerfd_create(clock, TFD_NONBLOCK | TFD_CLOEXEC);
  DELAYD_CHECK(fd >= 0);
  return fd;
}

// False when the timer was cancelled because its clock was set.
bool Drain(int fd) {
  uint64_t expirations = 0;
  return ::read(fd, &expirations, sizeof expirations) >= 0 || errno != ECANCELED;
}

}  // namespace

struct WakeTimer::Timers {
  Timers(asio::io_context* io, std::function<void()> on_clock_set)
      : deadline(*io, NewTimer(CLOCK_BOOTTIME)),
        wall(*io, NewTimer(CLOCK_REALTIME)),
        clock_set(std::move(on_clock_set)) {}

  void WaitDeadline() {
    deadline.async_wait(asio::posix::stream_descriptor::wait_read,
                        [this](const boost::system::error_code& error) {
                          if (!error) {
                            Drain(deadline.native_handle());
                            armed.reset();
                            WaitDeadline();
                          }
                        });
  }

  void ArmWall() {
    constexpr std::chrono::seconds kNever(253'402'300'799);  // the end of the year 9999
    const itimerspec never = At(kNever);
    DELAYD_CHECK(::timerfd_settime(wall.native_handle(),
                                   TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET,
                                   &never,
                                   nullptr) == 0 ||
                 errno == ECANCELED);
  }

  void WaitWall() {
    wall.async_wait(asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) {
                        return;
                      }
                      if (!Drain(wall.native_handle())) {
                        ArmWall();
                        clock_set();
                      }
                      WaitWall();
                    });
  }

  asio::posix::stream_descriptor deadline;
  asio::posix::stream_descriptor wall;
  std::function<void()> clock_set;
  std::optional<BootMicros> armed;
};

WakeTimer::WakeTimer(asio::io_context* io, std::function<void()> clock_set)
    : timers_(std::make_unique<Timers>(io, std::move(clock_set))) {
  timers_->WaitDeadline();
  timers_->ArmWall();
  timers_->WaitWall();
}

WakeTimer::~WakeTimer() = default;

void WakeTimer::SetDeadline(std::optional<BootMicros> deadline) {
  if (!deadline || (timers_->armed && *timers_->armed <= *deadline + kSlack)) {
    return;
  }
  timers_->armed = deadline;
  const itimerspec spec = At(deadline->time_since_epoch());
  DELAYD_CHECK(
      ::timerfd_settime(timers_->deadline.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
}

}  // namespace delayd
