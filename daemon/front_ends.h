// daemon/front_ends.h — the protocols on their sockets: what the sessions of one protocol share,
// and where each protocol listens.
//
// Errors:  an address that the daemon cannot listen on, or a socket from the service manager that
//          it does not ask for, with the cure.
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

// What the front ends use. All of it must outlive them.
struct FrontEndParts {
  const Config* config = nullptr;
  const Access* access = nullptr;
  const http::ServiceReport* service = nullptr;
  http::RequestCounts* counts = nullptr;
  TlsDoor* tls = nullptr;  // null: HTTP over TCP is not encrypted
  BootTime started{};
};

class FrontEnds {
 public:
  explicit FrontEnds(const FrontEndParts& parts);
  ~FrontEnds();
  FrontEnds(const FrontEnds&) = delete;
  FrontEnds& operator=(const FrontEnds&) = delete;

  // Takes the sockets that the service manager opened, and opens the others that the configuration
  // names. Returns their names, for the log. The server must not outlive this.
  StatusOr<std::string> ListenOn(Server* server);

  // Called once a turn. Answers bear this time from now on. Clients that were turned away are
  // logged; otherwise a whole fleet could be locked out while the daemon looks healthy.
  void BeginTurn(const Now& now);

 private:
  class HttpApi;
  class BeanstalkApi;

  const Config& config_;
  const std::unique_ptr<HttpApi> http_;
  const std::unique_ptr<BeanstalkApi> beanstalk_;
};

}  // namespace delayd
