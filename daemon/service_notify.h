// daemon/service_notify.h — what systemd is told: loading, ready, reloading, stopping, still
// turning.
//
// Errors:  none; without a service manager nothing happens.
// Threads: the core thread.
// Source:  sd_notify(3), sd_watchdog_enabled(3).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"

namespace delayd {

class ServiceNotify {
 public:
  // While the start reads the store; asks for more time too, so that a long one is not cut short.
  void Loading(uint64_t timers) const;
  void Ready(uint64_t timers) const;
  // What `systemctl status` shows from now on.
  void Doing(std::string_view what) const;
  // Around a reload of the configuration; `what` as for Doing.
  void Reloading() const;
  void Reloaded(std::string_view what) const;
  void Stopping() const;
  void Heartbeat() const;
  // Half of what the service manager waits; none when it does not watch.
  std::optional<Millis> HeartbeatInterval() const;
};

}  // namespace delayd
