#include "daemon/last_words.h"

#include <string>
#include <string_view>

#include "base/last_words.h"
#include "daemon/exit_codes.h"
#include "daemon/log.h"

#include <sys/resource.h>

namespace delayd {

namespace {

constexpr std::string_view kNoThread =
    "no thread could be made; the daemon ends. Raise the limit of processes (ulimit -u, TasksMax= "
    "or LimitNPROC= of the unit, pids.max of a container) or that of memory (ulimit -v or -d, "
    "LimitAS= or LimitDATA=)";
constexpr std::string_view kNoMemory =
    "no memory is left; the daemon ends. Raise the limit of memory (ulimit -v or -d, LimitAS= or "
    "LimitDATA=), or lower memory.budget or limits.connections";
constexpr std::string_view kMistake = "an error that nobody expects; the daemon ends";

std::string LimitOf(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) {
    return "unknown";
  }
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

void Tell(std::string_view message, std::string_view cause) {
  if (log::Started()) {
    log::Error(message,
               {{"cause", cause},
                {"processes_max", LimitOf(RLIMIT_NPROC)},
                {"memory_max", LimitOf(RLIMIT_AS)},
                {"data_max", LimitOf(RLIMIT_DATA)}});
  } else {
    TellOnStderr(message, cause);
  }
}

}  // namespace

void InstallLastWords() {
  InstallLastWords({.no_thread = kNoThread,
                    .no_memory = kNoMemory,
                    .mistake = kMistake,
                    .exit_code = kExitFailed,
                    .tell = Tell});
}

}  // namespace delayd
