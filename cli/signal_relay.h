// cli/signal_relay.h — takes SIGINT, SIGTERM and SIGHUP out of all threads and hands them to a
// worker, one Stop each.
//
// Errors:  kResourceExhausted where no thread can be started to wait for them.
// Threads: one owner; made before the threads that are not to be interrupted.
#pragma once

#include <signal.h>

#include <thread>

#include "base/status.h"
#include "cli/worker.h"

namespace delayd::cli {

class SignalRelay {
 public:
  explicit SignalRelay(Worker* worker);
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // Not OK: why it hands over none.
  const Status& started() const { return started_; }

 private:
  void Relay(Worker* worker) const;

  int done_fd_;
  int signal_fd_ = -1;
  sigset_t old_mask_{};
  Status started_;
  std::thread thread_;
};

}  // namespace delayd::cli
