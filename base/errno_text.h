// base/errno_text.h — what the system says of an error number, as in "No such file or directory".
//
// Threads: any (unlike strerror).
#pragma once

#include <string>
#include <string_view>

namespace delayd {

// `error` is a value of errno: take it before another call can change it.
std::string ErrnoText(int error);

// "; a service ...": what else to do about a path that the walls of the unit may close
// (ProtectSystem=, ProtectHome=). Empty where they cannot be the cause.
std::string ServiceCure(int error, std::string_view path);

}  // namespace delayd
