// cli/handler.h — one run of a worker's command, in a session of its own without a terminal. Its
// payload is on stdin; the end of its stderr is kept.
//
// Errors:  Start says why the command could not be run. How the run went is told by its exit.
// Threads: one owner. Ignore SIGPIPE beforehand: a handler need not read its payload.
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

  // Whether the system lets us wait for commands. A command that we start and cannot wait for is
  // killed and its job given back, so check before leasing one.
  static Status CheckSystem();

  // No shell: `command` is the program, looked up in PATH, and its arguments. `extra_environment`
  // adds "NAME=value" entries to our own environment.
  Status Start(const std::vector<std::string>& command,
               const std::vector<std::string>& extra_environment,
               std::string payload);

  // Call before Start: sends the command's stdout to our stderr.
  void SendOutputToErrors() { output_to_errors_ = true; }

  // Feeds and drains the process until it exits (kDone), the time comes, or `wake_fd` is readable.
  Event Wait(BootTime until, int wake_fd);

  // Sends a signal to the whole process group.
  void Signal(int signal);

  // SIGTERM to the whole group, and SIGKILL to what is left of it after `grace`: a shell exits at
  // once, but the command that it ran may still be at work.
  void End(Millis grace);

  // Valid after kDone; -1 if a signal ended it.
  int exit_code() const { return exit_code_; }

  int term_signal() const { return term_signal_; }

  // The end of what it wrote to stderr.
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
  std::string line_;  // the beginning of a line whose end has not come
  bool in_line_ = false;
  int exit_code_ = -1;
  int term_signal_ = 0;
};

}  // namespace delayd::cli
