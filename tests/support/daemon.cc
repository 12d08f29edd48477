#include "tests/support/daemon.h"

#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>

#include "tests/support/notify_socket.h"

namespace delayd::test {
std::string DelaydPath() {
  return DELAYD_BIN_DIR "/delayd";
}

std::string DelayctlPath() {
  return DELAYD_BIN_DIR "/delayctl";
}

Daemon::Daemon() = default;
Daemon::~Daemon() = default;

ProcessOptions Daemon::Options(const std::vector<std::string>& flags) const {
  ProcessOptions options;
  if (!under_.empty()) {
    options.argv = {"/bin/sh", "-c", under_ + "; exec \"$@\"", "sh"};
  }
  options.argv.push_back(DelaydPath());
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  const auto add_default = [&](const std::string& flag, const std::string& value) {
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) {
      options.argv.insert(options.argv.end(), {flag, value});
    }
  };
  add_default("--data-dir", data_dir());
  add_default("--api-socket", socket());
  return options;
}

bool Daemon::Start(const std::vector<std::string>& flags) {
  const NotifySocket notify(dir_.Sub("notify.sock"));
  ProcessOptions options = Options(flags);
  options.env["NOTIFY_SOCKET"] = dir_.Sub("notify.sock");
  options.stderr_path = dir_.Sub("log");
  process_ = std::make_unique<Process>(options);
  if (notify.WaitForReady(process_.get())) {
    return true;
  }
  ADD_FAILURE() << "delayd did not become ready:\n" << log();
  return false;
}

ProcessResult Daemon::StartExpectingFailure(const std::vector<std::string>& flags) {
  return RunProcess(Options(flags));
}

void Daemon::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait();
}

ProcessResult Daemon::Stop() {
  process_->Signal(SIGTERM);
  return process_->Wait();
}

void Daemon::WaitForLog(const std::string& text) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (log().find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "the log never said '" << text << "':\n" << log();
      return;
    }
    ::poll(nullptr, 0, 10);
  }
}

ProcessOptions Daemon::CtlOptions(const std::vector<std::string>& args,
                                  const std::string& stdin_text) const {
  ProcessOptions options;
  options.argv = {DelayctlPath()};
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.env["DELAYCTL_SERVER"] = "unix:" + socket();
  options.env["TZ"] = "UTC";  // wherever the test runs, tables read the same
  options.stdin_text = stdin_text;
  return options;
}

ProcessResult Daemon::Ctl(const std::vector<std::string>& args, const std::string& stdin_text) {
  return RunProcess(CtlOptions(args, stdin_text));
}

std::string Daemon::CtlOk(const std::vector<std::string>& args, const std::string& stdin_text) {
  ProcessResult result = Ctl(args, stdin_text);
  EXPECT_EQ(result.exit_code, 0) << result.err << log();
  if (result.out.ends_with('\n')) {
    result.out.pop_back();
  }
  return result.out;
}

std::string Daemon::LeaseOne(const std::string& queue) {
  const std::string leased = CtlOk({"lease", "--queue", queue, "--wait", "10s", "-o", "json"});
  const size_t at = leased.find("\"lease_token\"");
  EXPECT_NE(at, std::string::npos) << leased;
  const size_t begin = leased.find('"', leased.find(':', at)) + 1;
  return leased.substr(begin, leased.find('"', begin) - begin);
}

}  // namespace delayd::test
