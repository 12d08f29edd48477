#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "tests/support/files.h"

#include <sys/syscall.h>
#include <sys/wait.h>

extern char** environ;

namespace delayd::test {
namespace {

std::string MakeTempFile(const std::string& text) {
  std::string path = "/tmp/delayd-test-XXXXXX";
  const int fd = ::mkstemp(path.data());
  DELAYD_CHECK(fd >= 0);
  DELAYD_CHECK(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(fd);
  return path;
}

std::vector<std::string> Environment(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    if (!extra.contains(text.substr(0, text.find('=')))) {
      all.push_back(text);
    }
  }
  for (const auto& [name, value] : extra) {
    all.push_back(name + "=" + value);
  }
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(const ProcessOptions& options) {
  const auto file_or_own = [this](const std::string& path) {
    if (path.empty()) {
      own_files_.push_back(MakeTempFile(""));
    }
    return path.empty() ? own_files_.back() : path;
  };
  stdout_path_ = file_or_own(options.stdout_path);
  stderr_path_ = file_or_own(options.stderr_path);
  own_files_.push_back(MakeTempFile(options.stdin_text));
  const std::string stdin_path = own_files_.back();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, stdin_path.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(
      &actions, 1, stdout_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_addopen(
      &actions, 2, stderr_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  // A shell without job control starts what it runs in the background with this signal ignored.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigdefault(&attributes, &interrupt);
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env = Environment(options.env);
  const int spawned = ::posix_spawnp(
      &pid_, argv[0].c_str(), &actions, &attributes, Pointers(&argv).data(), Pointers(&env).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) {
    std::fprintf(stderr, "cannot start %s: %s\n", options.argv[0].c_str(), std::strerror(spawned));
    std::abort();
  }
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  DELAYD_CHECK(pidfd_ >= 0);
}

Process::~Process() {
  if (!result_) {
    Signal(SIGKILL);
    Wait();
  }
  ::close(pidfd_);
  for (const std::string& path : own_files_) {
    ::unlink(path.c_str());
  }
}

void Process::Signal(int signal) const {
  if (!result_) {
    ::kill(pid_, signal);
  }
}

void Process::Reap(int status) {
  ProcessResult result;
  if (WIFEXITED(status)) {
    result.exit_code = WEXITSTATUS(status);
  } else {
    result.signal = WTERMSIG(status);
  }
  result.out = ReadFile(stdout_path_);
  result.err = ReadFile(stderr_path_);
  result_ = std::move(result);
}

bool Process::HasEnded() {
  if (result_) {
    return true;
  }
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) {
    return false;
  }
  Reap(status);
  return true;
}

ProcessResult Process::Wait(std::chrono::seconds limit) {
  if (!result_) {
    pollfd ready{.fd = pidfd_, .events = POLLIN, .revents = 0};
    const int timeout = static_cast<int>(std::chrono::milliseconds(limit).count());
    if (TEMP_FAILURE_RETRY(::poll(&ready, 1, timeout)) == 0) {
      Signal(SIGKILL);
    }
    int status = 0;
    DELAYD_CHECK(TEMP_FAILURE_RETRY(::waitpid(pid_, &status, 0)) == pid_);
    Reap(status);
  }
  return *result_;
}

std::string Process::err() const {
  return ReadFile(stderr_path_);
}

ProcessResult RunProcess(const ProcessOptions& options, std::chrono::seconds limit) {
  Process process(options);
  return process.Wait(limit);
}

bool WaitUntil(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    ::poll(nullptr, 0, 2);
  }
  return true;
}

}  // namespace delayd::test
