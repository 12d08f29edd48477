// cli/work_report.h — what a worker says: a line for each job, and once that delayd is away.
//
// Errors:  kInternal where stdout, which programs read, cannot be written to.
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

namespace delayd::cli {

// What came of telling the daemon how a job went.
struct Delivery {
  bool told = false;  // the daemon took it
  std::string words;
};

class WorkReport {
 public:
  // Nobody waits for a line that cannot be written once `abandon_fd` can be read.
  WorkReport(Console* console, OutputFormat output, int abandon_fd)
      : console_(console), output_(output), abandon_fd_(abandon_fd) {}

  Status TellJob(const JobView& job, const Verdict& verdict, const Delivery& delivery, Millis took);

  // The daemon, or the way to it, failed; told the first time.
  void TellOutage(const Status& status);
  void TellBack();

 private:
  Console* console_;
  const OutputFormat output_;
  const int abandon_fd_;
  std::atomic<bool> outage_{false};
};

}  // namespace delayd::cli
