#include "daemon/last_words.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "daemon/exit_codes.h"
#include "daemon/log.h"

#include <sys/resource.h>

namespace delayd {

namespace {

constexpr std::string_view kNoThread =
    "no thread could be made; the daemon ends. Raise the limit of processes (ulimit -u, TasksMax= "
    "or LimitNPROC= of the unit, pids.max of a container) or that of memory (ulimit -v, LimitAS=)";
constexpr std::string_view kNoMemory =
    "no memory is left; the daemon ends. Raise the limit of memory (ulimit -v, LimitAS=), or lower "
    "memory.budget or limits.connections";
constexpr std::string_view kMistake = "an error that nobody expects; the daemon ends";

std::string LimitOf(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) {
    return "unknown";
  }
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

void Say(std::string_view line) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void Tell(std::string_view message, std::string_view cause) {
  if (log::Started()) {
    log::Error(message,
               {{"cause", cause},
                {"processes_max", LimitOf(RLIMIT_NPROC)},
                {"memory_max", LimitOf(RLIMIT_AS)}});
  } else {
    Say(std::string(message) + ": " + std::string(cause) + "\n");
  }
}

[[noreturn]] void Rest() {
  if (std::current_exception() == nullptr) {
    Tell(kMistake, "std::terminate");
    std::abort();
  }
  try {
    throw;
  } catch (const std::bad_alloc& error) {
    Tell(kNoMemory, error.what());
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) {
      Tell(kMistake, error.what());
      std::abort();
    }
    Tell(kNoThread, error.what());
  } catch (const std::exception& error) {
    Tell(kMistake, error.what());
    std::abort();
  } catch (...) {
    Tell(kMistake, "of a type that says nothing");
    std::abort();
  }
  std::_Exit(kExitFailed);
}

[[noreturn]] void LastWords() {
  // The line itself needs some memory, and other threads may run out of it at the same time.
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) {
    Say(kNoMemory);
    Say("\n");
    std::_Exit(kExitFailed);
  }
  Rest();
}

}  // namespace

void InstallLastWords() {
  std::set_terminate(LastWords);
}

}  // namespace delayd
