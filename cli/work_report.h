// cli/work_report.h — what a worker reports: a line per job, one per outage of delayd, and one
// about a queue that is paused or has damaged jobs.
//
// Errors:  kInternal when stdout, which programs read, cannot be written to.
// Threads: any.
#pragma once

#include <atomic>
#include <string>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/context.h"
#include "cli/job_handler.h"
#include "protocol/stats_json.h"

namespace delayd::cli {

// The result of telling the daemon how a job went.
struct Delivery {
  bool told = false;  // the daemon accepted it
  std::string words;
};

class WorkReport {
 public:
  // Once `abandon_fd` is readable, a line that cannot be written is dropped, not waited for.
  WorkReport(Console* console, OutputFormat output, int abandon_fd)
      : console_(console), output_(output), abandon_fd_(abandon_fd) {}

  Status TellJob(const JobView& job, const Verdict& verdict, const Delivery& delivery, Millis took);

  // The daemon or the connection failed; reported once until TellBack.
  void TellOutage(const Status& status);
  void TellBack();

  // Told once each.
  void TellPaused(const protocol::QueueCounts& queue);
  void TellDamaged(const protocol::QueueCounts& queue);

 private:
  Console* console_;
  const OutputFormat output_;
  const int abandon_fd_;
  std::atomic<bool> outage_{false};
  std::atomic<bool> told_paused_{false};
  std::atomic<bool> told_damaged_{false};
};

}  // namespace delayd::cli
