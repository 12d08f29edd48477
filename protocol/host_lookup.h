// protocol/host_lookup.h — resolves a host name within a deadline.
//
// What:    getaddrinfo has no deadline and takes half a minute when name servers are silent. So a
//          thread calls it, and is left behind when the deadline passes; the next call for the same
//          host waits for that thread. A numeric address needs no thread. When a limit on processes
//          leaves no thread, the lookup runs in the caller, for as long as it takes.
// Private to the client.
// Errors:  kUnavailable with the resolver's words; kDeadlineExceeded "timed_out".
// Threads: one owner. The process may end while a lookup is running.
#pragma once

#include <netdb.h>

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"

namespace delayd::protocol {

class HostLookup {
 public:
  using Addresses = std::shared_ptr<const addrinfo>;
  using Resolver = std::function<int(const char*, const char*, const addrinfo*, addrinfo**)>;

  explicit HostLookup(Resolver resolver = getaddrinfo) : resolver_(std::move(resolver)) {}

  // Ends as at the deadline once `give_up_fd` is readable; -1: none.
  StatusOr<Addresses> Find(const std::string& host,
                           const std::string& port,
                           BootTime deadline,
                           int give_up_fd);

 private:
  struct Question;

  Resolver resolver_;
  std::shared_ptr<Question> asked_;  // the lookup whose answer has not been fetched, or null
};

}  // namespace delayd::protocol
