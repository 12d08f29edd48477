// daemon/late_step.h — tells of a step that takes long while it is still under way, where nobody
// else is left to tell.
//
// Errors:  none; where the system has no thread for it nothing is told.
// Threads: the step runs in the caller's, `tell` in another, which has ended when this returns.
// Cost:    a thread for as long as the step takes.
#pragma once

#include <chrono>
#include <functional>

namespace delayd {

// `tell` is called once, when `step` has not ended after `late`.
void RunAndTellWhenLate(std::chrono::milliseconds late,
                        const std::function<void()>& tell,
                        const std::function<void()>& step);

}  // namespace delayd
