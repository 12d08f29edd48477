// tests/support/no_threads.h — as long as it lives the system refuses every new thread, as it does
// at a limit of processes, root's too: no stack is as large as is asked for.
//
// Errors:  a failed check when the system refuses.
// Threads: one; those that run go on.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "base/check.h"

namespace delayd::test {

class NoThreads {
 public:
  NoThreads() {
    DELAYD_CHECK(::pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t huge;
    DELAYD_CHECK(::pthread_attr_init(&huge) == 0);
    DELAYD_CHECK(::pthread_attr_setstacksize(&huge, size_t{1} << 48) == 0);
    DELAYD_CHECK(::pthread_setattr_default_np(&huge) == 0);
    ::pthread_attr_destroy(&huge);
  }

  ~NoThreads() {
    DELAYD_CHECK(::pthread_setattr_default_np(&before_) == 0);
    ::pthread_attr_destroy(&before_);
  }

  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace delayd::test
