#include "daemon/file_limit.h"

#include <algorithm>
#include <string>

#include "daemon/log.h"

#include <sys/resource.h>

namespace delayd {
namespace {

// How many files the store may want to have open.
constexpr rlim_t kOtherFiles = 1024;
// An empty store has about 30 files open, and each flush adds up to one per table.
constexpr rlim_t kOtherFilesMin = 128;

// With fewer, the store or the server's event descriptors cannot even be opened.
constexpr rlim_t kFilesMin = 64;

}  // namespace

void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

Status CheckFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kFilesMin) {
    return OkStatus();
  }
  return ResourceExhausted("the limit of open files is " + std::to_string(limit.rlim_cur) +
                           ", and the daemon needs " + std::to_string(kFilesMin) +
                           " at least; raise it (ulimit -n, LimitNOFILE=)");
}

uint32_t ConnectionsThatFit(uint32_t connections) {
  rlimit limit{};
  const rlim_t wanted = connections + kOtherFiles;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
    return connections;
  }
  const rlim_t others = std::clamp(limit.rlim_cur / 2, kOtherFilesMin, kOtherFiles);
  const rlim_t room = std::max(limit.rlim_cur, others + 1) - others;
  const auto fit = static_cast<uint32_t>(std::min<rlim_t>(connections, room));
  log::Warn("the limit of open files is low; raise it or lower limits.connections",
            {{"limit", limit.rlim_cur}, {"wanted", wanted}, {"connections_max", fit}});
  return fit;
}

}  // namespace delayd
