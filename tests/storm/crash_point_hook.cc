// What DELAYD_CRASH_POINT does in the copy of the daemon that storms kill (base/crash_point.h).
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/crash_point.h"

#include <sys/prctl.h>

namespace delayd {
namespace {

struct Target {
  std::string name;
  uint64_t hit = 0;
};

Target ReadTarget() {
  // A storm that is killed itself leaves no daemon behind.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* text = std::getenv("DELAYD_CRASH_AT");  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr) {
    return {};
  }
  const std::string value(text);
  const size_t colon = value.find(':');
  DELAYD_CHECK(colon != std::string::npos);
  Target target{.name = value.substr(0, colon),
                .hit = std::strtoull(value.c_str() + colon + 1, nullptr, 10)};
  DELAYD_CHECK(target.hit > 0);
  return target;
}

}  // namespace

void CrashPoint(const char* name) {
  static const Target target = ReadTarget();
  static std::atomic<uint64_t> hits = 0;
  if (target.hit != 0 && target.name == name && ++hits == target.hit) {
    ::kill(::getpid(), SIGKILL);
    for (;;) {
      ::pause();
    }
  }
}

}  // namespace delayd
