// daemon/http/service_report.h — what the daemon as a whole reports about itself over HTTP.
//
// What:    the answers that depend on more than the engine: metrics, health, readiness.
// Errors:  none; problems are the content of the answers.
// Threads: the core thread.
#pragma once

#include "base/time.h"
#include "daemon/http/http_message.h"

namespace delayd::http {

class ServiceReport {
 public:
  virtual ~ServiceReport() = default;

  virtual Response Metrics(const Now& now) const = 0;
  // Whether the daemon is alive: if it is not, a restart would help.
  virtual Response Health(const Now& now) const = 0;
  // Whether the daemon can do its work now; the body lists what does not work.
  virtual Response Readiness(const Now& now) const = 0;
};

}  // namespace delayd::http
