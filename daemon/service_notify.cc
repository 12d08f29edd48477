#include "daemon/service_notify.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include <systemd/sd-daemon.h>

namespace delayd {

namespace {

void Tell(const std::string& state) {
  // If the service manager cannot be reached, the daemon serves on. A signal while the manager's
  // queue is full must not lose the message: of a reload whose end it never hears, it waits for it.
  while (::sd_notify(0, state.c_str()) == -EINTR) {
  }
}

}  // namespace

void ServiceNotify::Loading(uint64_t timers) const {
  Tell("STATUS=Loading timers: " + std::to_string(timers) + "\nEXTEND_TIMEOUT_USEC=60000000");
}

void ServiceNotify::Ready(uint64_t timers) const {
  Tell("READY=1\nSTATUS=Serving; started with " + std::to_string(timers) + " timers");
}

void ServiceNotify::Doing(std::string_view what) const {
  Tell("STATUS=" + std::string(what));
}

void ServiceNotify::Reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t microseconds = int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  // systemd 253 and later match this time with their own request.
  Tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds));
}

void ServiceNotify::Reloaded(std::string_view what) const {
  Tell("READY=1\nSTATUS=" + std::string(what));
}

void ServiceNotify::Stopping() const {
  Tell("STOPPING=1\nSTATUS=Answering what is under way");
}

void ServiceNotify::Heartbeat() const {
  Tell("WATCHDOG=1");
}

std::optional<Millis> ServiceNotify::HeartbeatInterval() const {
  uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(0, &microseconds) <= 0) {
    return std::nullopt;
  }
  return std::max(Millis(static_cast<int64_t>(microseconds / 2000)), Millis(1));
}

}  // namespace delayd
