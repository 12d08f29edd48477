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
  // `wake_fd` can be read once the worker is stopped for the second time, and while another slot
  // has been given this one's job.
  Slot(Worker* worker, std::unique_ptr<Api> api, int wake_fd);

  // One job after another, until there are enough or the worker is stopped.
  void Run();

 private:
  BootTime Now() const { return worker_.context_->clock.Sample().boot; }

  Millis LeaseOf(const JobView& job) const { return options_.lease.value_or(job.lease); }

  std::optional<JobView> LeaseOne();
  // Whether the queue has ready jobs that its caps let nobody have yet.
  bool HoldsBack();
  // When its lease began, at the earliest.
  BootTime LeasedSince(const JobView& job, BootTime asked, Millis wait) const;

  // Whether it was this worker's job still.
  bool Work(const JobView& job);
  Verdict Handle(const JobView& job);
  // Waits for the handler, keeping the lease. Without an action: the lease is lost.
  Verdict Watch(const JobView& job, JobRun* run);
  Verdict EndWhenWoken(const JobView& job, JobRun* run);
  Verdict EndWithoutLease(const Status& refusal, JobRun* run);
  void EndWithinLease(const JobView& job, JobRun* run);
  Millis TimeToEnd(const Status& refusal) const;

  // Not OK: its lease may be over.
  Status KeepLease(const JobView& job);
  Status Extend(const JobView& job, std::optional<Millis> lease, Millis at_most);

  // Tells the daemon.
  Delivery Finish(const JobView& job, const Verdict& verdict);
  Delivery Refused(const Status& status, const std::string& said, bool in_vain, bool answer_lost);
  void RestBeforeRetry(int tries);

  Worker& worker_;
  const int wake_fd_;
  const WorkOptions& options_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<JobHandler> handler_;
  BootTime lease_end_;  // of the job in hand, at the earliest
  int lease_tries_ = 0;
  bool drained_ = false;
  bool held_back_ = false;
};

}  // namespace delayd::cli
