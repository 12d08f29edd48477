#include "tests/support/daemon.h"

#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>

#include "tests/support/notify_socket.h"

#include <sys/stat.h>

namespace delayd::test {
std::string DelaydPath() {
  return DELAYD_BIN_DIR "/delayd";
}

std::string DelayctlPath() {
  return DELAYD_BIN_DIR "/delayctl";
}

std::string Member(const std::string& json, const std::string& name) {
  const size_t at = json.find('"' + name + "\":");
  EXPECT_NE(at, std::string::npos) << name << " in " << json;
  if (at == std::string::npos) {
    return {};
  }
  const size_t begin = at + name.size() + 3;
  return json[begin] == '"' ? json.substr(begin + 1, json.find('"', begin + 1) - begin - 1)
                            : json.substr(begin, json.find_first_of(",}", begin) - begin);
}

std::string YamlText(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted.append(c == '\'' ? 2 : 1, c);
  }
  return quoted + "'";
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
  EXPECT_TRUE(WaitUntil([&] { return log().find(text) != std::string::npos; }))
      << "the log never said '" << text << "':\n"
      << log();
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
  return Member(CtlOk({"lease", "--queue", queue, "--wait", "10s", "-o", "json"}), "lease_token");
}

std::string Daemon::Write(const std::string& name, const std::string& text) const {
  WriteFile(Path(name), text);
  EXPECT_EQ(::chmod(Path(name).c_str(), 0600), 0);
  return Path(name);
}

std::string Daemon::TcpAddress() const {
  const std::string told = log();
  const size_t at = told.rfind("://127.0.0.");
  EXPECT_NE(at, std::string::npos) << told;
  const size_t begin = told.rfind("http", at);
  return told.substr(begin, told.find_first_of("\" \n", at) - begin);
}

}  // namespace delayd::test
