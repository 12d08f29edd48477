#include "cli/store_tool.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/errno_text.h"

#include <sys/wait.h>

namespace delayd::cli {
namespace {

using protocol::StoreLine;

constexpr std::string_view kRefused = "exit code 2";

// The daemon's program, for posix_spawnp.
std::string DelaydProgram() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size > 0 && static_cast<size_t>(size) < path.size()) {
    const std::string own(path.data(), static_cast<size_t>(size));
    const std::string directory = own.substr(0, own.rfind('/') + 1);
    // The package installs it in sbin, which is not in everybody's PATH.
    for (const char* name : {"delayd", "../sbin/delayd"}) {
      if (::access((directory + name).c_str(), X_OK) == 0) {
        return directory + name;
      }
    }
  }
  return "delayd";
}

// A running delayd; we read one of its outputs.
class Tool {
 public:
  Tool() = default;
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;

  ~Tool() {
    output_.reset();
    if (pid_ > 0) {
      ::waitpid(pid_, nullptr, 0);
    }
    std::free(line_);
  }

  // `read`: which output to read, stdout or stderr.
  Status Start(const std::vector<std::string>& flags, int read = STDOUT_FILENO) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return Internal("cannot open a pipe: " + ErrnoText(errno));
    }
    output_.reset(::fdopen(ends[0], "r"));
    const std::string program = DelaydProgram();
    std::vector<std::string> words = {program};
    words.insert(words.end(), flags.begin(), flags.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], read);
    if (read != STDOUT_FILENO) {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }
    const int error =
        posix_spawnp(&pid_, program.c_str(), &actions, nullptr, argv.data(), ::environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (error != 0) {
      pid_ = -1;
      return InvalidArgument("cannot run " + program + ": " + ErrnoText(error) +
                             "; install delayd beside delayctl, or put it into PATH");
    }
    return OkStatus();
  }

  // A handled signal may interrupt getline within a line.
  std::optional<std::string> NextLine() {
    std::string text;
    while (!text.ends_with('\n')) {
      errno = 0;
      const ssize_t size = ::getline(&line_, &capacity_, output_.get());
      if (size > 0) {
        text.append(line_, static_cast<size_t>(size));
      }
      if (std::feof(output_.get()) != 0 || (size < 0 && errno != EINTR)) {
        break;
      }
      std::clearerr(output_.get());
    }
    return text.empty() ? std::nullopt : std::optional(std::move(text));
  }

  // Reaps it and tells how it ended, in words.
  std::string WaitForEnd() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                               : "exit code " + std::to_string(WEXITSTATUS(status));
  }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  pid_t pid_ = -1;
  std::unique_ptr<std::FILE, Closer> output_;
  char* line_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace

StatusOr<ConfigVerdict> CheckDaemonConfig(const std::string& file) {
  Tool tool;
  DELAYD_RETURN_IF_ERROR(tool.Start({"--check-config", "--config", file}, STDERR_FILENO));
  ConfigVerdict verdict;
  while (std::optional<std::string> line = tool.NextLine()) {
    if (line->ends_with('\n')) {
      line->pop_back();
    }
    verdict.remarks.push_back(*std::move(line));
  }
  const std::string end = tool.WaitForEnd();
  verdict.valid = end == "exit code 0";
  if (!verdict.valid && end != kRefused) {
    return Internal("delayd ended with " + end + " and did not check the file; run it again");
  }
  return verdict;
}

StatusOr<StoreLine> RunStoreTool(const std::vector<std::string>& flags,
                                 const StoreProgressHook& progress) {
  Tool tool;
  DELAYD_RETURN_IF_ERROR(tool.Start(flags));
  std::optional<StoreLine> last;
  while (const std::optional<std::string> text = tool.NextLine()) {
    StatusOr<StoreLine> line = protocol::ParseStoreLine(*text);
    if (!line.ok()) {
      return Internal("delayd said what is not understood: " + line.status().message() +
                          "; are delayctl and delayd of the same version?",
                      "invalid_response");
    }
    if (const auto* step = std::get_if<protocol::StoreProgress>(&*line)) {
      progress(*step);
    } else {
      last = *std::move(line);
    }
  }
  const std::string end = tool.WaitForEnd();
  if (!last.has_value()) {
    // What it could not report as a line is already on stderr.
    return end == kRefused
               ? InvalidArgument("delayd refused to start; see its words above")
               : Internal("delayd ended with " + end + " and gave no result; run it again");
  }
  if (const auto* problem = std::get_if<Status>(&*last)) {
    return *problem;
  }
  // The result line comes before the end of its work, during which it was killed.
  if (end.starts_with("signal")) {
    return Internal("delayd ended with " + end + " before it was done; run it again");
  }
  return *std::move(last);
}

}  // namespace delayd::cli
