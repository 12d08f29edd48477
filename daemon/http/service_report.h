// daemon/http/service_report.h — what the daemon as a whole says about itself over HTTP.
//
// What:    the answers that rest on more than the engine: metrics, health, readiness.
// Errors:  none; what is wrong is what the answers are about.
// Threads: the core thread.
#pragma once

#include "base/time.h"
#include "daemon/http/http_message.h"

namespace delayd::http {

class ServiceReport {
 public:
  virtual ~ServiceReport() = default;

  virtual Response Metrics(const Now& now) const = 0;
  // Alive: whether a restart would help.
  virtual Response Health(const Now& now) const = 0;
  // Whether what the daemon is for works now; the body says what does not.
  virtual Response Readiness(const Now& now) const = 0;
};

}  // namespace delayd::http
