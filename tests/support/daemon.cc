#include "tests/support/daemon.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include <gtest/gtest.h>

#include "base/check.h"

#include <sys/socket.h>
#include <sys/un.h>

namespace delayd::testing {
namespace {

// The receiving end of the service manager's notify socket.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path)
      : path_(path), fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    DELAYD_CHECK(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.data(), path.size());
    ::unlink(path.c_str());
    DELAYD_CHECK(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }

  ~NotifySocket() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }

  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // Whether READY=1 came before the process ended, or a minute passed.
  bool WaitForReady(Process* process) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 50) == 1) {
        char text[4096];
        const ssize_t size = ::recv(fd_, text, sizeof text, 0);
        if (size > 0 && std::string_view(text, static_cast<size_t>(size)).find("READY=1") !=
                            std::string_view::npos) {
          return true;
        }
      } else if (process->HasEnded()) {
        return false;
      }
    }
    return false;
  }

 private:
  std::string path_;
  int fd_;
};

}  // namespace

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
  options.argv = {DelaydPath()};
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

}  // namespace delayd::testing
