// protocol/host_lookup.h — the addresses of a host's name, which are waited for no longer than a
// deadline.
//
// What:    getaddrinfo knows no deadline, and takes half a minute where name servers are silent.
//          So a thread asks it, and is left behind when the time is over; the next call waits for
//          the same one. An address in figures needs no thread; and where the system has none to
//          give, under a limit of processes, a name is asked for as long as it takes.
// Private to the client.
// Errors:  kUnavailable with the resolver's words; kDeadlineExceeded "timed_out".
// Threads: one owner. The process may end while a thread asks.
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

  // Over, as at the deadline, when `give_up_fd` can be read; -1: none.
  StatusOr<Addresses> Find(const std::string& host,
                           const std::string& port,
                           BootTime deadline,
                           int give_up_fd);

 private:
  struct Question;

  Resolver resolver_;
  std::shared_ptr<Question> asked_;  // null, or one whose answer has not been fetched
};

}  // namespace delayd::protocol
