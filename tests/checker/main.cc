// history_check: decides from the clients' histories which promises delayd kept.
//
//   history_check [--lateness-max MS] FILE...
//
// Exit code: 0 every invariant held, 1 a violation, 2 usage or unreadable input.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/checker/checker.h"

int main(int argc, char** argv) {
  using namespace delayd;
  checker::CheckOptions options;
  checker::History history;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--lateness-max" && i + 1 < argc) {
      options.lateness_max_ms = std::strtoll(argv[++i], nullptr, 10);
      continue;
    }
    ++files;
    if (const Status read = checker::ReadHistory(argv[i], &history); !read.ok()) {
      std::fprintf(stderr, "history_check: %s\n", read.message().c_str());
      return 2;
    }
  }
  if (files == 0) {
    std::fprintf(stderr, "usage: history_check [--lateness-max MS] FILE...\n");
    return 2;
  }
  const checker::Verdict verdict = checker::Check(std::move(history), options);
  for (const checker::Violation& violation : verdict.violations) {
    std::printf("%s: line %llu: %s\n",
                violation.invariant.c_str(),
                static_cast<unsigned long long>(violation.line),
                violation.what.c_str());
  }
  std::printf(
      "%llu events: %llu jobs enqueued, %llu hand-outs, %llu acks, %llu cancels, %llu requests "
      "without an answer, %llu kills\n",
      static_cast<unsigned long long>(verdict.events),
      static_cast<unsigned long long>(verdict.enqueued),
      static_cast<unsigned long long>(verdict.delivered),
      static_cast<unsigned long long>(verdict.acked),
      static_cast<unsigned long long>(verdict.cancelled),
      static_cast<unsigned long long>(verdict.unknown),
      static_cast<unsigned long long>(verdict.kills));
  std::printf("lateness p50 %lld ms, p99 %lld ms, p99.9 %lld ms, max %lld ms\n",
              static_cast<long long>(verdict.lateness_ms[0]),
              static_cast<long long>(verdict.lateness_ms[1]),
              static_cast<long long>(verdict.lateness_ms[2]),
              static_cast<long long>(verdict.lateness_ms[3]));
  std::printf("%llu violations\n", static_cast<unsigned long long>(verdict.violation_count));
  return verdict.violation_count == 0 ? 0 : 1;
}
