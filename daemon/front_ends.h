// daemon/front_ends.h — the protocols on their sockets: what sessions of one protocol share, and
// where each listens.
//
// Errors:  an address that cannot be listened on, or a socket of the service manager that nothing
//          asks for, with the cure.
// Threads: the core thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "daemon/access.h"
#include "daemon/config.h"
#include "daemon/http/request_counts.h"
#include "daemon/http/service_report.h"
#include "daemon/server.h"
#include "daemon/tls_session.h"

namespace delayd {

// What they are made of. All must outlive them.
struct FrontEndParts {
  const Config* config = nullptr;
  const Access* access = nullptr;
  const http::ServiceReport* service = nullptr;
  http::RequestCounts* counts = nullptr;
  TlsDoor* tls = nullptr;  // null, or what HTTP over TCP is spoken through
  BootTime started{};
};

class FrontEnds {
 public:
  explicit FrontEnds(const FrontEndParts& parts);
  ~FrontEnds();
  FrontEnds(const FrontEnds&) = delete;
  FrontEnds& operator=(const FrontEnds&) = delete;

  // Takes what the service manager opened, and opens what else the configuration names. Their
  // names, for the log. The server must not outlive this.
  StatusOr<std::string> ListenOn(Server* server);

  // Once a turn: answers bear this time from now on, and the log is told of clients that were
  // turned away, or a fleet could be shut out while the daemon looks well.
  void BeginTurn(const Now& now);

 private:
  class HttpApi;
  class BeanstalkApi;

  const Config& config_;
  const std::unique_ptr<HttpApi> http_;
  const std::unique_ptr<BeanstalkApi> beanstalk_;
};

}  // namespace delayd
