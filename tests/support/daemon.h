// tests/support/daemon.h — a real delayd on a directory of its own, and a real delayctl that talks
// to it.
//
// What:    Start waits for the READY=1 that systemd would get, not for a time. Kill is kill -9,
//          Stop is SIGTERM.
// Errors:  test failures, with the daemon's log.
// Threads: one.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace delayd::test {

std::string DelaydPath();
std::string DelayctlPath();

// The text of a member of the first object in `json` that has it; a number as it stands.
std::string Member(const std::string& json, const std::string& name);

// The text as a value for a configuration file, such as a path below any TMPDIR.
std::string YamlText(const std::string& text);

class Daemon {
 public:
  Daemon();
  ~Daemon();

  // From now on it is started behind this command of the shell: "ulimit -n 160".
  void Under(std::string command) { under_ = std::move(command); }

  // False, with a test failure, when it ends before it is ready.
  bool Start(const std::vector<std::string>& flags = {});
  // Starts one that is expected to refuse, and gives what it said.
  ProcessResult StartExpectingFailure(const std::vector<std::string>& flags = {});
  void Kill();

  void Signal(int signal) { process_->Signal(signal); }

  // Until the log has this text; a test failure when it does not come.
  void WaitForLog(const std::string& text) const;
  ProcessResult Stop();

  bool running() { return process_ != nullptr && !process_->HasEnded(); }

  // delayctl with this daemon as its server.
  ProcessResult Ctl(const std::vector<std::string>& args, const std::string& stdin_text = "");
  ProcessOptions CtlOptions(const std::vector<std::string>& args,
                            const std::string& stdin_text = "") const;
  // The same, and a test failure when its exit code is not 0; gives its output without the last
  // newline.
  std::string CtlOk(const std::vector<std::string>& args, const std::string& stdin_text = "");
  // The lease token of the next job of the queue, which is waited for.
  std::string LeaseOne(const std::string& queue);

  std::string Path(const std::string& name) const { return dir_.Sub(name); }

  // A file beside the data directory, for its owner only, as a file of tokens must be; its path.
  std::string Write(const std::string& name, const std::string& text) const;
  // What --api-listen 127.0.0.1:0 came to at the latest start: "http://127.0.0.1:4711".
  std::string TcpAddress() const;

  std::string data_dir() const { return dir_.Sub("data"); }

  std::string socket() const { return dir_.Sub("d.sock"); }

  pid_t pid() const { return process_->pid(); }

  std::string log() const { return ReadFile(dir_.Sub("log")); }

 private:
  ProcessOptions Options(const std::vector<std::string>& flags) const;

  TempDir dir_;
  std::string under_;
  std::unique_ptr<Process> process_;
};

}  // namespace delayd::test
