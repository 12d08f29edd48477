// daemon/service_notify.h — notifies systemd: loading, ready, reloading, stopping, alive.
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
  // While the start reads the store. Also asks for more time, so that a long start is not aborted.
  void Loading(uint64_t timers) const;
  void Ready(uint64_t timers) const;
  // Sets what `systemctl status` shows from now on.
  void Doing(std::string_view what) const;
  // Around a reload of the configuration; `what` as for Doing.
  void Reloading() const;
  void Reloaded(std::string_view what) const;
  void Stopping() const;
  void Heartbeat() const;
  // Half of the service manager's watchdog timeout; none if there is no watchdog.
  std::optional<Millis> HeartbeatInterval() const;
};

}  // namespace delayd
