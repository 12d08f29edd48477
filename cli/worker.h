// cli/worker.h — `delayctl work`: leases jobs, has each handled, and says how it went.
//
// What:    as many slots as --concurrency, a thread and a connection each: lease one job, run the
//          handler, keep the lease alive meanwhile, then ack, nack or bury. A daemon that is away
//          is waited for, with one message. A lease that is lost stops its handler: the job is
//          somebody else's now, and where that is another slot, it waits until the handler is gone.
// Errors:  only what makes all further work senseless ends Run; all else is a line and a nack.
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
  std::optional<uint64_t> count;          // stop after so many jobs
  std::string client;                     // who works, for the jobs' history
  bool drain = false;                     // stop when no job is ready
  std::optional<Millis> handler_timeout;  // end it after this long
  // One lease request. Short, because stopping waits for it: an answer that nobody reads would
  // hold a job back for a whole lease.
  Millis poll{2000};
  // Between asking a handler to end and killing it.
  Millis grace{5000};
  // After one that could not be started, or not reach its receiver: for its job, and for the slot.
  Millis start_retry{1000};
};

class Worker {
 public:
  Worker(Context* context, WorkOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Until count or drain says so, or Stop.
  Status Run();

  // The first call: finish the running handlers. The second: end them and give the jobs back.
  void Stop();

  bool stopping() const { return stops_.load() > 0; }

  bool abandoning() const { return stops_.load() > 1; }

  // Jobs that were done and of which the daemon could not be told, as far as we know: they are
  // handed out again. A worker that serves until it is stopped has reported such jobs as they
  // happened; there only those since Stop count.
  uint64_t undelivered() const { return undelivered_.load(); }

 private:
  class Slot;

  bool TakeTurn();
  void GiveTurnBack();
  void CountUndelivered();
  void Fatal(const Status& status);
  // Sleeps unless stopped; returns at once then.
  void Pause(Millis time) const;
  void ReportOutage(const Status& status);

  Context* context_;
  WorkOptions options_;
  int stop_fd_ = -1;
  int abandon_fd_ = -1;
  WorkReport report_;
  std::vector<int> wake_fds_;  // one a slot: of the second Stop, and of a job that it lost
  JobsInHand in_hand_;
  std::atomic<int> stops_{0};
  std::atomic<uint64_t> turns_taken_{0};
  std::atomic<uint64_t> undelivered_{0};
  std::mutex fatal_mutex_;
  Status fatal_;
};

}  // namespace delayd::cli
