// tests/bench/load/server_process.h — what the server's processes have used so far.
//
// Units:   seconds, KiB.
// Errors:  a process that has gone counts nothing.
#pragma once

#include <cstdint>

namespace delayd::load {

// Processor time of a process, its children and those it has waited for; 0 for pid 0.
double CpuSeconds(int64_t pid);

int64_t ResidentKib(int64_t pid);

// Returns when the process does next to nothing any more, such as merging what it was given before;
// after two minutes in any case.
void WaitForRest(int64_t pid);

}  // namespace delayd::load
