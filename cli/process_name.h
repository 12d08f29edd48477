// cli/process_name.h — what this process calls itself to the daemon: "HOST:PID".
//
// Threads: any.
#pragma once

#include <string>

namespace delayd::cli {

std::string ProcessName();

}  // namespace delayd::cli
