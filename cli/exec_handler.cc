#include "cli/exec_handler.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/time.h"
#include "cli/handler.h"
#include "protocol/nearest.h"

#include <sys/stat.h>

namespace delayd::cli {
namespace {

Status CheckProgram(const std::string& path) {
  struct stat info {};

  if (stat(path.c_str(), &info) != 0) {
    return NotFound("there is no such program; check its path and rights");
  }
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("it is not a file");
  }
  return access(path.c_str(), X_OK) == 0
             ? OkStatus()
             : PermissionDenied("it is not executable; run chmod +x on it");
}

// Looks the command up as a path, or in PATH.
Status FindProgram(const std::string& command) {
  if (command.find('/') != std::string::npos) {
    return CheckProgram(command);
  }
  Status status =
      command.find(' ') == std::string::npos
          ? NotFound("there is no such program in PATH; check its name")
          : NotFound(
                "there is no such program in PATH; give the program and each argument as words "
                "of their own, or let a shell read them: --exec sh -c 'COMMAND'");
  const char* set = std::getenv("PATH");
  const std::string path = std::string(set == nullptr ? "/usr/bin:/bin" : set) + ":";
  for (size_t begin = 0, end = 0; (end = path.find(':', begin)) != std::string::npos;
       begin = end + 1) {
    // An empty entry is the current directory.
    const std::string directory = begin == end ? "." : path.substr(begin, end - begin);
    const Status found = CheckProgram(directory + "/" + command);
    if (found.ok()) {
      return found;
    }
    status = found.code() == StatusCode::kPermissionDenied ? found : status;
  }
  return status;
}

// What a handler's exit status means; 75 is EX_TEMPFAIL of sysexits.h.
constexpr int kExitRetry = 75;
constexpr int kExitBury = 100;

std::vector<std::string> JobEnvironment(const JobView& job) {
  return {"DELAYD_JOB_ID=" + std::to_string(ToInt(job.id)),
          "DELAYD_QUEUE=" + job.queue,
          "DELAYD_KEY=" + job.key,
          "DELAYD_ATTEMPT=" + std::to_string(job.attempt),
          "DELAYD_MAX_ATTEMPTS=" + std::to_string(job.max_attempts),
          "DELAYD_DUE=" + FormatUtc(job.due),
          "DELAYD_LATENESS_MS=" + std::to_string(job.lateness.value_or(Millis(0)).count())};
}

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

class ExecRun final : public JobRun {
 public:
  Status Start(const std::vector<std::string>& command, bool output_to_errors, const JobView& job) {
    if (output_to_errors) {
      handler_.SendOutputToErrors();
    }
    return handler_.Start(command, JobEnvironment(job), job.payload.value_or(""));
  }

  Event Wait(BootTime until, int wake_fd) override { return handler_.Wait(until, wake_fd); }

  void End(Millis grace) override { handler_.End(grace); }

  Verdict verdict() const override {
    const std::string tail = Trimmed(handler_.error_tail());
    const auto with_tail = [&](const std::string& what) {
      return tail.empty() ? what : what + ": " + tail;
    };
    if (handler_.term_signal() != 0) {
      return {"nack", with_tail("killed by signal " + std::to_string(handler_.term_signal()))};
    }
    switch (handler_.exit_code()) {
      case 0:
        return {"ack", ""};
      case kExitRetry:
        return {"nack", with_tail("asked for a retry (exit 75)")};
      case kExitBury:
        return {"bury", with_tail("asked to be buried (exit 100)")};
      default:
        return {"nack", with_tail("exit " + std::to_string(handler_.exit_code()))};
    }
  }

 private:
  Handler handler_;
};

class Exec final : public JobHandler {
 public:
  Exec(std::vector<std::string> command, bool output_to_errors)
      : command_(std::move(command)), output_to_errors_(output_to_errors) {}

  StatusOr<std::unique_ptr<JobRun>> Start(const JobView& job) override {
    auto run = std::make_unique<ExecRun>();
    DELAYD_RETURN_IF_ERROR(run->Start(command_, output_to_errors_, job));
    return std::unique_ptr<JobRun>(std::move(run));
  }

 private:
  const std::vector<std::string> command_;
  const bool output_to_errors_;
};

}  // namespace

Status CheckCommand(const std::string& program) {
  if (const Status found = FindProgram(program); !found.ok()) {
    return InvalidArgument("cannot run " + protocol::Quoted(program) + ": " + found.message());
  }
  return Handler::CheckSystem();
}

MakeJobHandler ExecHandler(std::vector<std::string> command, bool output_to_errors) {
  return [command = std::move(command), output_to_errors] {
    return std::make_unique<Exec>(command, output_to_errors);
  };
}

}  // namespace delayd::cli
