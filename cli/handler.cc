#include "cli/handler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "protocol/nearest.h"

#include <sys/syscall.h>
#include <sys/wait.h>

namespace delayd::cli {
namespace {

constexpr size_t kErrorTailBytes = 2048;
// PIPE_BUF: this much fits into a pipe when poll says that it has room.
constexpr size_t kPassBytesMax = 4096;
// The most to read at a time from a handler that never stops writing: a full pipe.
constexpr size_t kDrainBytesMax = size_t{64} << 10;
// A slow log still gets a handler's last output; a stuck one does not delay its ack.
constexpr int kLastWordsMs = 500;
// Nothing signals that the last process of a group is gone, so we poll.
constexpr Millis kLookAtGroupEvery{20};

constexpr std::string_view kCannotBeEnded =
    "delayctl: the command cannot be ended: the system forbids it; it is waited for, and its job "
    "may be handed out meanwhile; where it runs as another user (sudo), run the worker as that "
    "user\n";

// Whether our stderr can be written to. A stopped terminal or a pager takes nothing, and while
// waiting for it we could neither keep the lease nor notice a timeout or a signal.
bool StderrTakes(int wait_ms = 0) {
  pollfd entry{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&entry, 1, wait_ms) != 0;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) {
    // posix_spawn takes char* but does not write to it.
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<char*> EnvironmentOf(const std::vector<std::string>& extra) {
  std::vector<char*> pointers = Pointers(extra);
  pointers.pop_back();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    // The worker's own DELAYD_ variables must not hide the job's.
    const std::string_view text(*entry);
    const bool replaced = std::any_of(extra.begin(), extra.end(), [&](const std::string& own) {
      return text.starts_with(std::string_view(own).substr(0, own.find('=') + 1));
    });
    if (!replaced) {
      pointers.push_back(*entry);
    }
  }
  pointers.push_back(nullptr);
  return pointers;
}

struct Pipe {
  int read = -1;
  int write = -1;

  ~Pipe() {
    for (const int fd : {read, write}) {
      if (fd >= 0) {
        close(fd);
      }
    }
  }

  bool Open() {
    std::array<int, 2> fds{};
    if (pipe2(fds.data(), O_CLOEXEC) != 0) {
      return false;
    }
    read = fds[0];
    write = fds[1];
    return true;
  }

  static int Release(int* fd) {
    const int released = *fd;
    *fd = -1;
    // Non-blocking for the worker's ends; the handler's ends are ordinary.
    fcntl(released, F_SETFL, O_NONBLOCK);
    return released;
  }
};

// The wrapper of glibc 2.36 has C++ linkage by mistake and does not link.
int OpenPidFd(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

std::string CannotWait(int error) {
  return "cannot wait for commands: pidfd_open: " + ErrnoText(error) +
         (error == EPERM
              ? "; let the container's or the service's filter of system calls (seccomp, "
                "SystemCallFilter=) pass it"
          : error == ENOSYS ? "; Linux 5.3 or later is needed, and a container's filter of system "
                              "calls (seccomp) that knows it"
                            : "");
}

// Errors that a later start will meet again. A shortage of memory, processes or files may pass, and
// so may a program file that is being written.
bool FailsForGood(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case ENOSYS:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOEXEC:
    case ELIBBAD:
      return true;
    default:
      return false;
  }
}

// Starts the command in a session, and so a process group, of its own: a timeout reaches all its
// processes, and Ctrl-C none. In our session a process that reads the terminal would be stopped for
// ever; in its own it has no terminal to open. Signals are reset to what a program expects.
int Spawn(pid_t* pid,
          const std::vector<std::string>& command,
          const std::vector<std::string>& environment,
          int input,
          int errors,
          bool output_to_errors) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&actions);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  if (output_to_errors) {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  }
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  const int error = posix_spawnp(pid,
                                 command.front().c_str(),
                                 &actions,
                                 &attributes,
                                 Pointers(command).data(),
                                 EnvironmentOf(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

Handler::~Handler() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  CloseFd(&pid_fd_);
  CloseFd(&payload_fd_);
  CloseFd(&error_fd_);
}

void Handler::CloseFd(int* fd) {
  if (*fd >= 0) {
    close(*fd);
    *fd = -1;
  }
}

Status Handler::CheckSystem() {
  const int own = OpenPidFd(getpid());
  if (own < 0) {
    return InvalidArgument(CannotWait(errno));
  }
  close(own);
  return OkStatus();
}

Status Handler::Start(const std::vector<std::string>& command,
                      const std::vector<std::string>& extra_environment,
                      std::string payload) {
  Pipe input;
  Pipe errors;
  if (!input.Open() || !errors.Open()) {
    return Unavailable("cannot open pipes for the handler: " + ErrnoText(errno));
  }
  const int error =
      Spawn(&pid_, command, extra_environment, input.read, errors.write, output_to_errors_);
  if (error != 0) {
    pid_ = -1;
    return InvalidArgument(
        "cannot run " + protocol::Quoted(command.front()) + ": " + ErrnoText(error) + "; " +
            (error == EAGAIN
                 ? std::string(kCureForProcesses)
                 : "check its path, its rights and, of a script, its first line (#!/bin/sh)"),
        error == E2BIG        ? kJobTooLarge
        : FailsForGood(error) ? kCannotRun
                              : "");
  }
  pid_fd_ = OpenPidFd(pid_);
  if (pid_fd_ < 0) {
    const int refused = errno;
    return Internal(CannotWait(refused), FailsForGood(refused) ? kCannotRun : "");
  }
  payload_fd_ = Pipe::Release(&input.write);
  error_fd_ = Pipe::Release(&errors.read);
  payload_ = std::move(payload);
  FeedPayload();
  return OkStatus();
}

void Handler::FeedPayload() {
  while (payload_fd_ >= 0 && payload_written_ < payload_.size()) {
    const ssize_t count =
        write(payload_fd_, payload_.data() + payload_written_, payload_.size() - payload_written_);
    if (count < 0 && errno == EAGAIN) {
      return;
    }
    if (count < 0 && errno != EINTR) {
      // It has closed its stdin or exited; it need not read its payload.
      break;
    }
    payload_written_ += count > 0 ? static_cast<size_t>(count) : 0;
  }
  CloseFd(&payload_fd_);
}

void Handler::PassOn(std::string_view text, bool to_end) {
  while (!text.empty() && !log_stuck_) {
    if (to_end && !StderrTakes(kLastWordsMs)) {
      log_stuck_ = true;
      break;
    }
    const ssize_t passed = write(STDERR_FILENO, text.data(), text.size());
    if (passed <= 0) {
      break;
    }
    in_line_ = text[static_cast<size_t>(passed) - 1] != '\n';
    text.remove_prefix(static_cast<size_t>(passed));
  }
}

// Passes whole lines on, so that the output of other handlers and our own messages do not end up in
// the middle of one. A line that is too long is passed on in parts.
void Handler::PassOnLines(bool to_end) {
  size_t end = line_.find_last_of("\r\n") + 1;
  if (end == 0 && line_.size() == kPassBytesMax) {
    end = line_.size();
  }
  PassOn(std::string_view(line_).substr(0, end), to_end);
  line_.erase(0, end);
}

// Ends an open line, so that our next message about the job begins a line, where people and tools
// look for it.
void Handler::EndLine() {
  if (in_line_ || !line_.empty()) {
    PassOn(line_ + '\n', true);
    line_.clear();
  }
}

// `to_end`: reads everything even if our stderr is stuck; then only the tail keeps it.
void Handler::DrainErrors(bool to_end) {
  std::array<char, kPassBytesMax> buffer{};
  for (size_t bytes = 0; error_fd_ >= 0 && bytes < kDrainBytesMax && (to_end || StderrTakes());) {
    const ssize_t count = read(error_fd_, buffer.data(), buffer.size() - line_.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && errno == EAGAIN) {
      return;
    }
    if (count <= 0) {
      CloseFd(&error_fd_);
      return;
    }
    // Passed on at once, because people look into the worker's log first.
    line_.append(buffer.data(), static_cast<size_t>(count));
    PassOnLines(to_end);
    bytes += static_cast<size_t>(count);
    error_tail_.append(buffer.data(), static_cast<size_t>(count));
    if (error_tail_.size() > kErrorTailBytes) {
      error_tail_.erase(0, error_tail_.size() - kErrorTailBytes);
    }
  }
}

void Handler::Reap() {
  int status = 0;
  pid_t reaped = -1;
  while ((reaped = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  // Without a status it would look like exit 0, and its job would be acked.
  DELAYD_CHECK(reaped == pid_);
  pid_ = -1;
  if (WIFEXITED(status)) {
    exit_code_ = WEXITSTATUS(status);
  } else {
    term_signal_ = WTERMSIG(status);
  }
  // Read what it wrote before it exited; children that outlive it may hold the pipe open.
  DrainErrors(true);
  CloseFd(&pid_fd_);
  CloseFd(&payload_fd_);
  if (!ending_) {
    CloseFd(&error_fd_);
    EndLine();
  }
}

Handler::Event Handler::Wait(BootTime until, int wake_fd) {
  const SystemClock clock;
  for (;;) {
    const int64_t left = std::max<int64_t>(0, (until - clock.Sample().boot).count());
    const pollfd errors = error_fd_ < 0 || StderrTakes() ? pollfd{error_fd_, POLLIN, 0}
                                                         : pollfd{STDERR_FILENO, POLLOUT, 0};
    std::array<pollfd, 4> entries{
        {{pid_fd_, POLLIN, 0}, {wake_fd, POLLIN, 0}, {payload_fd_, POLLOUT, 0}, errors}};
    const int ready =
        poll(entries.data(),
             entries.size(),
             static_cast<int>(std::min<int64_t>(left, std::numeric_limits<int>::max())));
    if (ready < 0) {
      continue;
    }
    if (entries[2].revents != 0) {
      FeedPayload();
    }
    if (entries[3].revents != 0) {
      DrainErrors(false);
    }
    if (entries[0].revents != 0) {
      Reap();
      return Event::kDone;
    }
    if (entries[1].revents != 0) {
      return Event::kWoken;
    }
    if (clock.Sample().boot >= until) {
      return Event::kDeadline;
    }
  }
}

void Handler::Signal(int signal) {
  if (pid_ > 0) {
    kill(-pid_, signal);
  }
}

bool Handler::IsAlive(pid_t group) const {
  // As the first process of a container we inherit its orphans, and zombies count until reaped.
  while (pid_ <= 0 && waitpid(-group, nullptr, WNOHANG) > 0) {
  }
  return kill(-group, 0) == 0 || errno != ESRCH;
}

void Handler::End(Millis grace) {
  if (pid_ <= 0) {
    return;
  }
  const SystemClock clock;
  const pid_t group = pid_;
  const BootTime until = clock.Sample().boot + grace;
  ending_ = true;  // keeps the pipe open: SIGPIPE would kill processes that clean up
  Signal(SIGTERM);
  Wait(until, -1);
  // While one of its processes lives, no other group can get its id.
  while (IsAlive(group) && clock.Sample().boot < until) {
    Wait(std::min(until, clock.Sample().boot + kLookAtGroupEvery), -1);
  }
  const bool refused = IsAlive(group) && kill(-group, SIGKILL) != 0 && errno == EPERM;
  if (pid_ > 0) {
    if (refused) {
      EndLine();
      PassOn(kCannotBeEnded, true);
    }
    Wait(BootTime::max(), -1);
  }
  DrainErrors(true);
  CloseFd(&error_fd_);
  EndLine();
}

}  // namespace delayd::cli
