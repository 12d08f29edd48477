// cli/handler.h — one run of a worker's command: a session of its own, without a terminal, the
// payload on its stdin, the end of its stderr kept.
//
// Errors:  Start answers with why the command could not be run. What it did is its exit.
// Threads: one owner. Set SIGPIPE to be ignored before: a handler may not read its payload.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "cli/job_handler.h"

#include <sys/types.h>

namespace delayd::cli {

class Handler {
 public:
  using Event = JobRun::Event;

  Handler() = default;
  ~Handler();
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

  // Whether the system lets us wait for commands. One that is started and cannot be waited for is
  // killed, and its job given back: ask before there is a job.
  static Status CheckSystem();

  // No shell: `command` is the program, looked up in PATH, and its arguments. `extra_environment`
  // is "NAME=value" on top of our own.
  Status Start(const std::vector<std::string>& command,
               const std::vector<std::string>& extra_environment,
               std::string payload);

  // Before Start: what it writes to stdout goes to our stderr.
  void SendOutputToErrors() { output_to_errors_ = true; }

  // Feeds and drains the process until it exits (kDone), the time comes, or `wake_fd` can be read.
  Event Wait(BootTime until, int wake_fd);

  // To the whole group.
  void Signal(int signal);

  // SIGTERM to the whole group, and SIGKILL to what is left of it after `grace`: a shell goes at
  // once, and the command that it ran may be at the job still.
  void End(Millis grace);

  // After kDone: -1 if a signal ended it.
  int exit_code() const { return exit_code_; }

  int term_signal() const { return term_signal_; }

  // The last of what it wrote to stderr.
  const std::string& error_tail() const { return error_tail_; }

 private:
  void FeedPayload();
  void DrainErrors(bool to_end);
  void PassOn(std::string_view text, bool to_end);
  void PassOnLines(bool to_end);
  void EndLine();
  void Reap();
  bool IsAlive(pid_t group) const;
  static void CloseFd(int* fd);

  bool ending_ = false;
  bool output_to_errors_ = false;
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  int payload_fd_ = -1;
  int error_fd_ = -1;
  std::string payload_;
  size_t payload_written_ = 0;
  std::string error_tail_;
  bool log_stuck_ = false;
  std::string line_;  // its beginning, of which the end has not come
  bool in_line_ = false;
  int exit_code_ = -1;
  int term_signal_ = 0;
};

}  // namespace delayd::cli
