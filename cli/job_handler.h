// cli/job_handler.h — what a worker does with a job: run a command, or call a webhook.
//
// Units:   base/time.h, on the boot clock.
// Errors:  Start answers with why nothing was begun; what came of a run is its verdict.
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

// How a run is answered: which call on the lease, and with which words.
struct Verdict {
  std::string action;  // "ack", "nack" or "bury"
  std::string error;
  std::optional<Millis> delay = std::nullopt;  // of a nack; default: the retry policy's
  // Of a nack. False: it was not the job's fault; its default delay is the worker's start_retry.
  bool counts_as_attempt = true;
  // No job fares better with this worker: one that is to end by itself ends now.
  bool for_good = false;
};

// Why Start refused, where it was the job's fault.
inline constexpr const char* kJobTooLarge = "job_too_large";

// Why it refused, where it will refuse every job until somebody mends the handler.
inline constexpr const char* kCannotRun = "cannot_run";

// Where the system refuses a thread or a process.
inline constexpr std::string_view kCureForProcesses =
    "allow more processes (TasksMax= of the service, or ulimit -u), or handle fewer jobs at a time "
    "with --concurrency";

// One job being handled. Destroying it ends it without ceremony.
class JobRun {
 public:
  enum class Event : uint8_t { kDone, kDeadline, kWoken };

  virtual ~JobRun() = default;

  // Goes on with it until it is done, the time comes, or `wake_fd` (-1: none) can be read.
  virtual Event Wait(BootTime until, int wake_fd) = 0;
  // Ends it before its time; it gets `grace` to tidy up.
  virtual void End(Millis grace) = 0;
  // After kDone.
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
