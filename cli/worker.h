// cli/worker.h — `delayctl work`: leases jobs, has each one handled, and reports how it went.
//
// What:    --concurrency slots, each with a thread and a connection: lease a job, run its handler,
//          keep the lease alive meanwhile, then ack, nack or bury. A worker waits for a daemon that
//          is away, with one message. A lost lease stops its handler: the job is somebody else's
//          now, and if that is another slot, it waits until the handler is gone.
// Errors:  only a failure that makes all further work pointless ends Run; others are a line and a
//          nack.
// Threads: Run blocks; Stop may be called from any thread, and is async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/context.h"
#include "cli/job_handler.h"
#include "cli/jobs_in_hand.h"
#include "cli/work_report.h"

namespace delayd::cli {

struct WorkOptions {
  std::string queue = "default";
  MakeJobHandler make_handler;
  size_t concurrency = 1;
  std::optional<Millis> lease;            // default: each job's own
  std::optional<uint64_t> count;          // stop after this many jobs
  std::string client;                     // the worker's name, for the jobs' history
  bool drain = false;                     // stop when no job is ready
  std::optional<Millis> handler_timeout;  // end it after this long
  // How long one lease request waits. Short, because a stop waits for it: an answer that nobody
  // reads would hold a job back for a whole lease.
  Millis poll{2000};
  // Between asking a handler to end and killing it.
  Millis grace{5000};
  // How long the job and the slot rest after a handler could not start or not reach its receiver.
  Millis start_retry{1000};
};

class Worker {
 public:
  Worker(Context* context, WorkOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Returns when count or drain is fulfilled, or after Stop.
  Status Run();

  // The first call lets running handlers finish; the second ends them and gives their jobs back.
  void Stop();

  bool stopping() const { return stops_.load() > 0; }

  bool abandoning() const { return stops_.load() > 1; }

  // Jobs that were handled but whose outcome, as far as we know, did not reach the daemon: they
  // will be handed out again. A worker that runs until it is stopped reports such jobs as they
  // happen, so there only those since Stop count.
  uint64_t undelivered() const { return undelivered_.load(); }

  // Whether a drain ended with damaged jobs in the queue.
  bool left_damaged() const { return left_damaged_.load(); }

 private:
  class Slot;

  bool TakeTurn();
  void GiveTurnBack();
  void CountUndelivered();
  void Fatal(const Status& status);
  // Sleeps; a stop ends the sleep at once.
  void Pause(Millis time) const;
  void ReportOutage(const Status& status);

  Context* context_;
  WorkOptions options_;
  int stop_fd_ = -1;
  int abandon_fd_ = -1;
  WorkReport report_;
  std::vector<int> wake_fds_;  // one per slot: signals the second Stop, or that it lost its job
  JobsInHand in_hand_;
  std::atomic<int> stops_{0};
  std::atomic<uint64_t> turns_taken_{0};
  std::atomic<uint64_t> undelivered_{0};
  std::atomic<bool> left_damaged_{false};
  std::mutex fatal_mutex_;
  Status fatal_;
};

}  // namespace delayd::cli
