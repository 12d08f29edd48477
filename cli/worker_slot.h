// cli/worker_slot.h — one thread's share of a worker: a connection, a handler, and the job in hand.
//
// Threads: one owner, the thread that calls Run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/api.h"
#include "cli/job_handler.h"
#include "cli/work_report.h"
#include "cli/worker.h"

namespace delayd::cli {

class Worker::Slot {
 public:
  // `wake_fd` is readable from the second stop of the worker on, and while another slot has been
  // given this one's job.
  Slot(Worker* worker, std::unique_ptr<Api> api, int wake_fd);

  // Handles one job after another until the count is reached or the worker is stopped.
  void Run();

 private:
  BootTime Now() const { return worker_.context_->clock.Sample().boot; }

  Millis LeaseOf(const JobView& job) const { return options_.lease.value_or(job.lease); }

  std::optional<JobView> LeaseOne();
  // Whether the queue has, or may have, ready jobs that its caps hold back.
  bool HoldsBack();
  // The earliest moment at which the job's lease can have begun.
  BootTime LeasedSince(const JobView& job, BootTime asked, Millis wait) const;

  // Whether the job was still this worker's at the end.
  bool Work(const JobView& job);
  Verdict Handle(const JobView& job);
  // Waits for the handler and keeps the lease. A verdict without an action: the lease is lost.
  Verdict Watch(const JobView& job, JobRun* run);
  Verdict EndWhenWoken(const JobView& job, JobRun* run);
  Verdict EndWithoutLease(const Status& refusal, JobRun* run);
  void EndWithinLease(const JobView& job, JobRun* run);
  Millis TimeToEnd(const Status& refusal) const;

  // Not OK: the lease may be over.
  Status KeepLease(const JobView& job);
  Status Extend(const JobView& job, std::optional<Millis> lease, Millis at_most);

  // Tells the daemon the verdict.
  Delivery Finish(const JobView& job, const Verdict& verdict);
  Delivery Refused(const Status& status, const std::string& said, bool in_vain, bool answer_lost);
  void RestBeforeRetry(int tries);

  Worker& worker_;
  const int wake_fd_;
  const WorkOptions& options_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<JobHandler> handler_;
  BootTime lease_end_;  // the earliest end of the lease of the job in hand
  int lease_tries_ = 0;
  bool drained_ = false;
  bool held_back_ = false;
};

}  // namespace delayd::cli
