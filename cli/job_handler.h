// cli/job_handler.h — what a worker does with a job: run a command, or call a webhook.
//
// Units:   base/time.h, on the boot clock.
// Errors:  Start says why nothing was begun; the outcome of a run is its verdict.
// Threads: one handler and its runs belong to one slot of the worker.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"

namespace delayd::cli {

// What to tell the daemon after a run: which call on the lease, and its error text.
struct Verdict {
  std::string action;  // "ack", "nack" or "bury"
  std::string error;
  std::optional<Millis> delay = std::nullopt;  // of a nack; default: the retry policy's
  // Of a nack. False: it was not the job's fault; the default delay is the worker's start_retry.
  bool counts_as_attempt = true;
  // No other job would fare better: a worker that is to end by itself ends now.
  bool for_good = false;
};

// Start's reason when the job is at fault.
inline constexpr const char* kJobTooLarge = "job_too_large";

// Start's reason when it will refuse every job until somebody fixes the handler.
inline constexpr const char* kCannotRun = "cannot_run";

// Advice when the system refuses a thread or a process.
inline constexpr std::string_view kCureForProcesses =
    "allow more processes (TasksMax= of the service, or ulimit -u), or handle fewer jobs at a time "
    "with --concurrency";

// One job being handled. Destroying it kills the run at once.
class JobRun {
 public:
  enum class Event : uint8_t { kDone, kDeadline, kWoken };

  virtual ~JobRun() = default;

  // Lets it run until it is done, the time comes, or `wake_fd` (-1: none) is readable.
  virtual Event Wait(BootTime until, int wake_fd) = 0;
  // Ends it early; it gets `grace` to clean up.
  virtual void End(Millis grace) = 0;
  // Valid after kDone.
  virtual Verdict verdict() const = 0;
};

class JobHandler {
 public:
  virtual ~JobHandler() = default;
  virtual StatusOr<std::unique_ptr<JobRun>> Start(const JobView& job) = 0;
};

// Each slot of a worker has a handler of its own.
using MakeJobHandler = std::function<std::unique_ptr<JobHandler>()>;

}  // namespace delayd::cli
