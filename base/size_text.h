// base/size_text.h — sizes as people write them, in messages.
//
// Errors:  none.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace delayd {

// Exact, in the largest unit that allows it: "512MiB", "1536B", "0B".
std::string FormatSize(uint64_t bytes);

}  // namespace delayd
