// tests/support/process.h — programs as a user runs them: started, watched, killed, and asked for
// what they printed.
//
// Errors:  a failed check when the system refuses to start one.
// Threads: one.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace delayd::test {

struct ProcessOptions {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // on top of the test's own
  std::string stdin_text;
  std::string stdout_path;  // appended to; empty: a file of its own, read by out()
  std::string stderr_path;
};

// What a finished process did.
struct ProcessResult {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;
  std::string out;
  std::string err;
};

class Process {
 public:
  explicit Process(const ProcessOptions& options);
  ~Process();  // kills it when it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  void Signal(int signal) const;
  // Waits for the end; after `limit` the process is killed, which shows as signal 9.
  ProcessResult Wait(std::chrono::seconds limit = std::chrono::seconds(60));
  // Whether it has ended, without waiting.
  bool HasEnded();
  std::string err() const;

 private:
  void Reap(int status);

  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::optional<ProcessResult> result_;
  std::string stdout_path_;
  std::string stderr_path_;
  std::vector<std::string> own_files_;
};

// Starts, waits, and gives what it printed.
ProcessResult RunProcess(const ProcessOptions& options,
                         std::chrono::seconds limit = std::chrono::seconds(60));

// Asks every 2 ms; whether it came true within `limit`, which is there for a test that would hang.
bool WaitUntil(const std::function<bool()>& condition,
               std::chrono::milliseconds limit = std::chrono::minutes(1));

}  // namespace delayd::test
