// base/check.h — assertions on our own mistakes; they stay on in release builds.
//
// Errors:  a failed check prints file, line and condition to stderr and aborts. For a user's
//          mistake return a Status.
// Threads: any.
// Cost:    one predicted branch.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace delayd::internal {

[[noreturn, gnu::cold]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace delayd::internal

// One claim per check, so that the message says which one was wrong.
#define DELAYD_CHECK(condition)                                        \
  do {                                                                 \
    if (!(condition)) [[unlikely]] {                                   \
      ::delayd::internal::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                                  \
  } while (false)
