// base/signal_mask.h — blocks or unblocks signals for the calling thread, and for those it starts.
//
// Errors:  none that a valid `how` could cause.
// Threads: any; called early in main, it holds for the whole process.
#pragma once

#include <csignal>
#include <initializer_list>

#include "base/check.h"

namespace delayd {

// `how`: SIG_BLOCK or SIG_UNBLOCK.
inline void MaskSignals(int how, std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) {
    ::sigaddset(&set, signal);
  }
  DELAYD_CHECK(::pthread_sigmask(how, &set, nullptr) == 0);
}

}  // namespace delayd
