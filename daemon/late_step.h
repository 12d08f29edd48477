// daemon/late_step.h — reports a slow step while it is still running, where nothing else is left to
// report it.
//
// Errors:  none; if no thread can be started, nothing is reported.
// Threads: the step runs on the caller's thread, `tell` on another one, which has ended on return.
// Cost:    a thread for as long as the step takes.
#pragma once

#include <chrono>
#include <functional>

namespace delayd {

// Calls `tell` once if `step` has not ended after `late`.
void RunAndTellWhenLate(std::chrono::milliseconds late,
                        const std::function<void()>& tell,
                        const std::function<void()>& step);

}  // namespace delayd
