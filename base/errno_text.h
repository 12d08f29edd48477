// base/errno_text.h — what the system says of an error number, as in "No such file or directory".
//
// Threads: any (unlike strerror).
#pragma once

#include <string>

namespace delayd {

// `error` is a value of errno: take it before another call can change it.
std::string ErrnoText(int error);

}  // namespace delayd
