// tests/bench/load/worker.h — a client that leases jobs and acks them at once.
//
// What:    keeps up to `window` jobs leased. Where nothing is due it waits at the server if that is
// possible, and
//          polls every millisecond if not. A lease that waits is the last thing sent: what comes
//          behind it would wait too.
// Units:   microseconds of the steady clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/bench/load/client.h"

namespace delayd::load {

class Worker {
 public:
  // The client must outlive it.
  Worker(Client* client, size_t window);

  // Leases as much as it may; `wait`: nothing is known to be due.
  void Begin(bool wait);
  // Takes an answer to this client.
  void Serve(const Answer& answer);
  // Asks again where the server cannot wait. Call it every millisecond.
  void Poll(int64_t now_us);

 private:
  void Lease(bool wait);
  void AckAll(const std::vector<LeasedJob>& jobs);

  Client* client_;
  size_t window_;
  size_t lease_jobs_;  // of one request
  size_t ack_jobs_;
  size_t leases_ = 0;  // under way
  int64_t idle_since_us_ = -1;
  std::vector<std::string_view> tokens_;
};

}  // namespace delayd::load
